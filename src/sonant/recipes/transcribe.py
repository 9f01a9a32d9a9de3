"""What `sonant transcribe` does: recordings wherever they lie, one after the other, each result kept when it is there.

What is done already is not done again; a recording that cannot be heard becomes a line of `failures.csv`.
"""

from __future__ import annotations

import glob
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sonant.base import storage
from sonant.base.errors import UsageError
from sonant.base.names import suggestion
from sonant.base.progress import Progress, clock
from sonant.corpus.manifest import MANIFEST, open_corpus
from sonant.corpus.sources.locate import is_audio, list_audio
from sonant.inference.listener import OnHeard, Request
from sonant.inference.transcriber import Failure
from sonant.inference.transcripts import FORMATS, Transcript
from sonant.recipes.out_folder import OutFolder


@dataclass(frozen=True)
class Named:
    """A recording and what its results are called."""

    name: str
    request: Request
    text: str | None = None  # what a corpus says is said in it


def on_channel(found: Iterable[Named], channel: int | None) -> Iterator[Named]:
    """The same recordings, of which one channel is heard; None: that of a corpus, or the mean of all."""
    for one in found:
        yield one if channel is None else replace(one, request=replace(one.request, channel=channel))


class Answering(Protocol):
    """What transcribes: here, or on a cluster."""

    def transcribe_all(
        self, requests: Iterable[Request], on_heard: OnHeard = ...
    ) -> Iterator[Transcript | Failure]: ...


@dataclass
class Done:
    """What became of the recordings."""

    num_written: int = 0
    num_skipped: int = 0
    seconds: float = 0.0  # of what was heard
    elapsed: float = 0.0  # seconds that it took
    failures: list[Failure] = field(default_factory=list)

    def __str__(self) -> str:
        told = f"{self.num_written:,} recordings"
        if self.seconds:
            factor = self.elapsed / self.seconds
            told += f", {clock(self.seconds)} heard in {clock(self.elapsed)} (real-time factor {factor:.3f})"
        return told + (f"; {self.num_skipped:,} were done already" if self.num_skipped else "")


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
    transcriber: Answering,
    found: Iterable[Named],
    folder: str,
    formats: Sequence[str],
    *,
    made_by: Mapping[str, Any] | None = None,
    again: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> Done:
    """A file for each recording and format, written whole; without `again` those that are there are left alone.

    `made_by` says what makes them: files that something else has made are not added to. What failed before is tried
    again.
    """
    formats = check_formats(formats)
    done, place, started = Done(), OutFolder(folder, made_by or {}, again=again), time.monotonic()

    def missing() -> Iterator[Named]:
        for one in found:
            if place.has(one.name, formats):
                done.num_skipped += 1
            else:
                yield one

    with Progress("transcribing", unit="recordings") as bar:
        on_heard = _telling(bar, started)
        try:
            for _, result in results(transcriber, missing(), on_heard):
                if isinstance(result, Failure):
                    done.failures.append(result)
                    say(str(result.error))
                else:
                    for kind in formats:
                        place.write_soon(result.name, kind, FORMATS[kind](result))
                    done.num_written += 1
                    done.seconds += result.seconds
                bar.advance()
        finally:
            place.write_failures(done.failures)
            place.finish()
            done.elapsed = time.monotonic() - started
    return done


def check_formats(formats: Sequence[str]) -> list[str]:
    """As they are spelt here; `textgrid` is the TextGrid."""
    known = {kind.casefold(): kind for kind in FORMATS}
    for kind in formats:
        if kind.casefold() not in known:
            raise UsageError("--format", f"'{kind}' is not known.", suggestion(kind, FORMATS))
    return [known[kind.casefold()] for kind in formats]


def results(
    transcriber: Answering, found: Iterable[Named], on_heard: OnHeard = lambda seconds: None
) -> Iterator[tuple[str, Transcript | Failure]]:
    """Each recording's name with what became of it."""
    names: deque[str] = deque()

    def requests() -> Iterator[Request]:
        for one in found:
            names.append(one.name)
            yield one.request

    for result in transcriber.transcribe_all(requests(), on_heard):
        name = names.popleft()
        yield name, result if isinstance(result, Failure) else replace(result, name=name)


def _telling(bar: Progress, started: float) -> OnHeard:
    """Tells how much was heard, and how fast."""
    heard = 0.0

    def on_heard(seconds: float) -> None:
        nonlocal heard
        heard += seconds
        bar.advance(0, f"{clock(heard)} heard, {heard / max(time.monotonic() - started, 1e-9):.1f} × real time")

    return on_heard


def _of_place(place: str, split: str | None) -> Iterator[Named]:
    is_folder = storage.is_folder(place)
    if is_folder and storage.exists(storage.join(place, MANIFEST)):
        yield from _of_corpus(place, split)
        return
    if split:
        raise UsageError("--split", f"{place} is no corpus, and has no splits.", "Leave it out, or name a corpus.")
    if is_folder:
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
