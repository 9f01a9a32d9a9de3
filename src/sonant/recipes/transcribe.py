"""What `sonant transcribe` does: recordings wherever they lie, one after the other, each result kept when it is there.

What is done already is not done again; a recording that cannot be heard becomes a line of `failures.csv`.
"""

from __future__ import annotations

import csv
import glob
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sonant.base import storage
from sonant.base.errors import UsageError
from sonant.base.names import suggestion
from sonant.base.progress import Progress
from sonant.corpus.manifest import MANIFEST, open_corpus
from sonant.corpus.sources.locate import is_audio, list_audio
from sonant.inference.transcriber import Failure, Request, Transcriber
from sonant.inference.transcripts import FORMATS, Transcript

FAILURES = "failures.csv"


@dataclass(frozen=True)
class Named:
    """A recording and what its results are called."""

    name: str
    request: Request
    text: str | None = None  # what a corpus says is said in it


@dataclass
class Done:
    """What became of the recordings."""

    num_written: int = 0
    num_skipped: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)


def recordings(places: Sequence[str], split: str | None = None) -> Iterator[Named]:
    """Of files, folders, patterns, URIs and corpora, in this order; no two have one name."""
    names: set[str] = set()
    for place in places:
        for found in _of_place(place, split):
            name, number = found.name, 1
            while name in names:
                number += 1
                name = f"{found.name}-{number}"
            names.add(name)
            yield replace(found, name=name)


def transcribe_into(
    transcriber: Transcriber,
    found: Iterable[Named],
    folder: str,
    formats: Sequence[str],
    *,
    again: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> Done:
    """A file for each recording and format, written whole; without `again` those that are there are left alone."""
    formats = check_formats(formats)
    done, names = Done(), []

    def missing() -> Iterator[Request]:
        for one in found:
            if not again and all(storage.exists(result_file(folder, one.name, kind)) for kind in formats):
                done.num_skipped += 1
                continue
            names.append(one.name)
            yield one.request

    with Progress("transcribing", unit="recordings") as bar:
        for number, result in enumerate(transcriber.transcribe_all(missing())):
            if isinstance(result, Failure):
                done.failures.append(result)
                say(str(result.error))
            else:
                for kind in formats:
                    storage.write_text(result_file(folder, names[number], kind), FORMATS[kind](result))
                done.num_written += 1
                done.seconds += result.seconds
            bar.advance()
    if done.failures:
        storage.write_text(storage.join(folder, FAILURES), _table(done.failures))
    elif storage.exists(storage.join(folder, FAILURES)):
        storage.remove(storage.join(folder, FAILURES))
    return done


def result_file(folder: str, name: str, kind: str) -> str:
    """Where the result of a recording is written."""
    return storage.join(folder, f"{name.lstrip('/')}.{kind}")


def check_formats(formats: Sequence[str]) -> list[str]:
    """As they are spelt here; `textgrid` is the TextGrid."""
    known = {kind.casefold(): kind for kind in FORMATS}
    for kind in formats:
        if kind.casefold() not in known:
            raise UsageError("--format", f"'{kind}' is not known.", suggestion(kind, FORMATS))
    return [known[kind.casefold()] for kind in formats]


def results(transcriber: Transcriber, found: Iterable[Named]) -> Iterator[tuple[str, Transcript | Failure]]:
    """Each recording's name with what became of it."""
    names: list[str] = []

    def requests() -> Iterator[Request]:
        for one in found:
            names.append(one.name)
            yield one.request

    for number, result in enumerate(transcriber.transcribe_all(requests())):
        yield names[number], result


def _of_place(place: str, split: str | None) -> Iterator[Named]:
    if storage.is_folder(place):
        if storage.exists(storage.join(place, MANIFEST)):
            yield from _of_corpus(place, split)
        else:
            yield from _of_folder(place)
    elif any(sign in place for sign in "*?[") and not storage.exists(place):
        yield from _of_pattern(place)
    else:
        yield _file_named(place, os.path.basename(place.partition("#")[2] or place))


def _of_corpus(place: str, split: str | None) -> Iterator[Named]:
    corpus = open_corpus(place)
    for one in corpus.split(split) if split else corpus:
        if one.audio is not None:
            request = Request(one.audio, one.start, one.seconds, one.channel, one.sample_rate)
            yield Named(one.id, request, one.text or "")


def _of_folder(place: str) -> Iterator[Named]:
    found = False
    for file in list_audio(place):
        found = True
        yield _file_named(file, file[len(place.rstrip("/")) + 1 :])
    if not found:
        problem = "no recording lies there: none of its files ends in .wav, .flac, .mp3, .ogg and the like."
        raise UsageError(place, problem, "Name the files themselves if they are called otherwise.")


def _of_pattern(place: str) -> Iterator[Named]:
    if storage.is_remote(place):
        system, path = storage.file_system(place)
        scheme = place.partition("://")[0]
        files = [f"{scheme}://{found}" for found in sorted(system.glob(path))]
    else:
        files = sorted(glob.glob(place, recursive=True))
    if not files:
        raise UsageError(place, "no file fits this pattern.", "Check it, and put quotes around it.")
    for file in files:
        yield _file_named(file, os.path.basename(file))


def _file_named(file: str, name: str) -> Named:
    return Named(os.path.splitext(name)[0] if is_audio(name) else name, Request(file))


def _table(failures: Sequence[Failure]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["recording", "problem", "action"])
    writer.writerows([one.audio, f"{one.error.where}: {one.error.problem}", one.error.action] for one in failures)
    return text.getvalue()
