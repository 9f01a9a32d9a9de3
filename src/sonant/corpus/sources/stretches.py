"""The stretches of recordings that a Kaldi folder calls utterances: `wav.scp`, cut by `segments` where there are any.

`reco2file_and_channel` tells the channel of recordings that share a file. Where each has a file of its own, the
channels have been taken apart before, and the table only tells where they come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from sonant.corpus.sources.keyed import Keyed, KeyedFile
from sonant.corpus.sources.neighbours import are_together
from sonant.corpus.sources.scp import Pointer, ScpError, pointer_of
from sonant.corpus.sources.tables.cells import CellError, span_of
from sonant.corpus.sources.tables.utterances import channel_of
from sonant.corpus.utterance import Finding

_TO_THE_END = -1.0  # an end that is not known
_NO_CHANNEL = "-1"
_SIDES = {"A": 0, "B": 1, "1": 0, "2": 1}  # counted from 1 here, unlike in segments
_FORM = "Write: UTTERANCE RECORDING START END, times in seconds."


class Stretch(NamedTuple):
    """A recording, or what a line of `segments` cuts out of it."""

    id: str
    pointer: Pointer
    place: str
    named_at: str  # the line of wav.scp
    start: float = 0.0
    seconds: float | None = None
    channel: int | None = None


class Stretches:
    """All stretches of a folder, read anew by each iteration, and every line that means none."""

    def __init__(self, scp: KeyedFile, segments: KeyedFile | None = None, channels: KeyedFile | None = None) -> None:
        self.scp, self.segments, self.channels = scp, segments, channels
        self.main = segments or scp

    def __iter__(self) -> Iterator[Stretch | Finding]:
        lines: dict[str, int] = {}  # equal keys need not be neighbours: what came before is kept
        for line in self.main:
            first = line.number if self.main.is_ordered else lines.setdefault(line.key, line.number)
            if first != line.number:
                yield self.main.twice(line, first)
            elif self.segments:
                yield self._cut(line, self.segments.place(line.number))
            else:
                yield self._whole(line)

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the files beside their utterances."""
        for file in (self.scp, self.segments, self.channels):
            yield from file.findings if file else ()
        yield from self._told_channels[1]
        if not self.segments:
            return
        for line in self.scp:
            if (first := self._recordings[line.key][0]) != line.number:
                yield self.scp.twice(line, first)
        cut = {name for line in self.segments for name in line.value.split()[:1]}
        unused = [(number, key) for key, (number, _) in self._recordings.items() if key not in cut]
        if unused:
            problem = f"{len(unused)} of its recordings have no segment, among them '{unused[0][1]}'."
            yield Finding(
                rule="unused-recording",
                place=self.scp.place(unused[0][0]),
                problem=problem,
                action="Add their segments, if something is said there.",
                is_error=False,
            )

    @cached_property
    def are_together(self) -> bool:
        """Whether the stretches of each file stand together."""
        return are_together(f"{one.pointer.offset}:{one.pointer.name}" for one in self if isinstance(one, Stretch))

    def _whole(self, line: Keyed) -> Stretch | Finding:
        place = self.scp.place(line.number)
        try:
            pointer = pointer_of(line.key, line.value)
            return Stretch(line.key, pointer, place, place, channel=self._channel(line.key, pointer))
        except ScpError as error:
            return error.finding(place, line.key)

    def _cut(self, line: Keyed, place: str) -> Stretch | Finding:
        parts = line.value.split()
        if len(parts) not in (3, 4):
            problem = f"the line has {len(parts) + 1} parts, 4 are required (a fifth may be the channel)."
            return Finding(rule="bad-line", place=place, problem=problem, action=_FORM, id=line.key)
        recording, *numbers = parts
        number, pointer = self._recordings.get(recording, (0, None))
        if pointer is None:
            problem = f"'{line.key}' is cut out of '{recording}', which has no line in {self.scp.location}."
            action = "Correct its name, or add the recording there."
            return Finding(rule="missing-audio", place=place, problem=problem, action=action, id=line.key)
        if isinstance(pointer, ScpError):
            return pointer.finding(self.scp.place(number), line.key)
        try:
            start, seconds = _span(numbers[0], numbers[1])
            channel = self._channel(recording, pointer, numbers[2] if len(numbers) == 3 else _NO_CHANNEL)
        except CellError as error:
            return error.finding(place, line.key)
        return Stretch(line.key, pointer, place, self.scp.place(number), start, seconds, channel)

    @cached_property
    def _recordings(self) -> dict[str, tuple[int, Pointer | ScpError]]:
        """Line and meaning of each recording: held, since segments come in an order of their own."""
        found: dict[str, tuple[int, Pointer | ScpError]] = {}
        for line in self.scp:
            if line.key not in found:
                found[line.key] = line.number, _meant(line)
        return found

    def _channel(self, recording: str, pointer: Pointer, told: str = _NO_CHANNEL) -> int | None:
        """The channel that a command has picked, or the line tells, or the table of channels."""
        if pointer.channel is not None:
            return pointer.channel
        return channel_of(told) if told != _NO_CHANNEL else self._channels.get(recording)

    @cached_property
    def _channels(self) -> dict[str, int]:
        """Channels by recording, of those that lie in one file with others or with nothing else."""
        told, _ = self._told_channels
        files: dict[str, set[str]] = {}
        for line in self.scp if told else ():
            meant = _meant(line)
            if line.key in told and isinstance(meant, Pointer):
                files.setdefault(told[line.key][0], set()).add(meant.name)
        return {key: side for key, (file, side) in told.items() if len(files.get(file, ())) == 1}

    @cached_property
    def _told_channels(self) -> tuple[dict[str, tuple[str, int]], list[Finding]]:
        """File and channel by recording as the table has them, and the lines that tell none."""
        told: dict[str, tuple[str, int]] = {}
        findings: list[Finding] = []
        if self.channels is None:
            return told, findings
        for line in self.channels:
            file, _, side = line.value.replace("\t", " ").partition(" ")
            if side.strip() in _SIDES:
                told[line.key] = file, _SIDES[side.strip()]
            else:
                place, problem = self.channels.place(line.number), f"'{side.strip()}' is not a channel."
                action = "Write: RECORDING FILE A (or B)."
                findings.append(Finding(rule="bad-channel", place=place, problem=problem, action=action, id=line.key))
        return told, findings


def _meant(line: Keyed) -> Pointer | ScpError:
    try:
        return pointer_of(line.key, line.value)
    except ScpError as error:
        return error


def _span(start: str, end: str) -> tuple[float, float | None]:
    """Start and duration in seconds; the duration is None where the end is not known."""
    first, last = _seconds(start), _seconds(end)
    return span_of(first, None if last == _TO_THE_END else last)


def _seconds(text: str) -> float:
    """A bare number; leading zeros are common here."""
    try:
        seconds = float(text.replace(",", "."))
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise CellError.bad_time(f"'{text}' is not a time")
    return seconds
