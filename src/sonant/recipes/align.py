"""What `sonant align` does: recordings with their texts, one after the other, each result kept when it is there.

A table says how well each text fits, and each line of it where there are several, the worst first: where texts are
wrong, its head is what to look at. What has its files, and its row of the table for the text as it is now, is not done
again; what cannot be aligned becomes a row of `failures.csv`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from sonant.base import storage
from sonant.base.progress import Progress
from sonant.inference.listener import Request
from sonant.inference.transcriber import Failure, Transcriber
from sonant.inference.transcripts import FORMATS, Transcript, Word
from sonant.recipes.out_folder import OutFolder
from sonant.recipes.transcribe import Named, check_formats

SCORES = "scores.csv"
_COLUMNS = tuple("recording line score confidence seconds words least_sure at its_confidence skipped text_hash".split())
_SCORE = re.compile(r"-?\d+\.\d+")
_SHOWN = 200  # letters of skipped words
_SAVE_SECONDS = 60.0  # so much is done again after a kill

Result = Transcript | Failure
Paired = Iterable[tuple[str, Named | Failure]]


@dataclass
class Aligned:
    """What became of the recordings: rows of the table, the worst fit first, and what failed."""

    rows: list[list[str]] = field(default_factory=list)
    num_written: int = 0
    num_skipped: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)


class Unwritten:
    """Letters of all texts that the recogniser has no symbol for, counted on the way."""

    def __init__(self, transcriber: Transcriber) -> None:
        self._unknown_in = transcriber.spelling.tokenizer.unknown_in
        self.counts: Counter[str] = Counter()

    def watch(self, text: str) -> str:
        self.counts += self._unknown_in(text)
        return text

    def __str__(self) -> str:
        told = ", ".join(f"'{sign}' ({count:,})" for sign, count in self.counts.most_common(10))
        more = f" and {len(self.counts) - 10:,} more" if len(self.counts) > 10 else ""
        return (
            f"the recogniser cannot write {told}{more}: words are aligned by their other letters, "
            "and skipped where they have none"
        )


def results(transcriber: Transcriber, pairs: Paired, unwritten: Unwritten) -> Iterator[tuple[Named, Result]]:
    """Each recording with its alignment, or with why there is none; those that have one stand in their order."""
    aligned: deque[Named] = deque()
    failed: deque[tuple[Named, Failure]] = deque()

    def requests() -> Iterator[tuple[Request, str]]:
        for name, one in pairs:
            if isinstance(one, Failure):
                failed.append((Named(name, Request(one.audio)), one))
            else:
                aligned.append(one)
                yield one.request, unwritten.watch(one.text or "")

    for result in transcriber.align_all(requests()):
        one = aligned.popleft()
        yield one, result if isinstance(result, Failure) else replace(result, name=one.name)
        while failed:
            yield failed.popleft()
    yield from failed


def align_into(
    transcriber: Transcriber,
    pairs: Paired,
    folder: str,
    formats: Sequence[str],
    *,
    made_by: Mapping[str, Any] | None = None,
    again: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> Aligned:
    """A file for each recording and format, and the table; without `again` what is done already is left alone.

    `made_by` says what makes them: files that something else has made are not added to.
    """
    formats = check_formats(formats)
    place, where = OutFolder(folder, made_by or {}, again=again), storage.join(folder, SCORES)
    done, unwritten, rows, saved = Aligned(), Unwritten(transcriber), _read_rows(where), time.monotonic()

    def missing() -> Paired:
        for name, one in pairs:
            is_same = isinstance(one, Named) and name in rows and rows[name][0][-1] == _hash(one.text)
            if is_same and place.has(name, formats):
                done.num_skipped += 1
            else:
                yield name, one

    with Progress("aligning", unit="recordings") as bar:
        try:
            for one, result in results(transcriber, missing(), unwritten):
                rows.pop(one.name, None)
                if isinstance(result, Failure):
                    done.failures.append(Failure(one.name, result.error))
                    say(str(result.error))
                else:
                    for kind in formats:
                        place.write(one.name, kind, FORMATS[kind](result))
                    rows[one.name] = [[*row, _hash(one.text)] for row in rows_of(result)]
                    done.num_written += 1
                    done.seconds += result.seconds
                if time.monotonic() - saved > _SAVE_SECONDS:
                    _write_rows(where, rows.values())
                    saved = time.monotonic()
                bar.advance()
        finally:
            done.rows = _write_rows(where, rows.values())
            place.write_failures(done.failures)
    if unwritten.counts:
        say(str(unwritten))
    return done


def rows_of(found: Transcript) -> list[list[str]]:
    """Of the whole, and of its lines: how well the text fits, and the word that fits least."""
    skipped, starts = " ".join(found.skipped)[:_SHOWN], [word.start for word in found.words]
    rows = [[found.name, "", *_fit(found.score or 0.0, found.confidence, found.seconds, found.words), skipped]]
    for line in found.lines:
        own = found.words[bisect_left(starts, line.start) : bisect_left(starts, line.end)]
        rows.append([found.name, str(line.number), *_fit(line.score, line.confidence, line.end - line.start, own), ""])
    return rows


def _fit(score: float, confidence: float, seconds: float, words: Sequence[Word]) -> list[str]:
    worst = min(words, key=lambda word: word.confidence)
    told = [f"{round(number, 3) + 0.0:.3f}" for number in (score, confidence, seconds)]
    return [*told, str(len(words)), worst.text, f"{worst.start:.2f}", f"{worst.confidence:.3f}"]


def _read_rows(where: str) -> dict[str, list[list[str]]]:
    """The rows of an earlier run, by recording; another table of that name has none."""
    if not storage.exists(where):
        return {}
    lines = csv.reader(io.StringIO(storage.read_bytes(where).decode("utf-8", "replace")))
    if tuple(next(lines, ())) != _COLUMNS:
        return {}
    rows: dict[str, list[list[str]]] = {}
    for row in lines:
        if len(row) == len(_COLUMNS) and _SCORE.fullmatch(row[2]) and (row[1].isdecimal() or not row[1]):
            rows.setdefault(row[0], []).append(row)
    return rows


def _write_rows(where: str, rows: Iterable[list[list[str]]]) -> list[list[str]]:
    """The worst first."""
    ordered = sorted(chain(*rows), key=lambda row: (float(row[2]), row[0], int(row[1] or 0)))
    text = io.StringIO()
    csv.writer(text).writerows([_COLUMNS, *ordered])
    storage.write_text(where, text.getvalue())
    return ordered


def _hash(text: str | None) -> str:
    """A text that was mended is aligned anew."""
    return hashlib.sha256((text or "").encode("utf-8", "surrogatepass")).hexdigest()[:12]
