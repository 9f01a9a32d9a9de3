"""Files of timed text beside recordings: every interval that says something is an utterance.

A format hands in how one of its files is read; everything else is the same for all: which files, whose recording,
which tiers, what ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sonant.base import storage
from sonant.base.errors import SonantError, SourceError
from sonant.base.names import suggestion
from sonant.corpus.sources.locate import AudioFinder, audio_folder, basename, glimpse, is_litter
from sonant.corpus.sources.naming import numbered, path_id
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.utterances import one_line
from sonant.corpus.utterance import Finding, Utterance

_LANGUAGE = re.compile(r"\.[A-Za-z]{2,3}([-_]\w+)?$")  # talk.en.srt belongs to talk.wav
_TOLERANCE = 0.001  # seconds by which neighbours may overlap: times are rounded


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A stretch of time with its text, and the line that says so."""

    start: float  # seconds
    end: float
    text: str
    line: int
    speaker: str | None = None


@dataclass(frozen=True, kw_only=True)
class Tier:
    """A row of intervals of one file; `group` is alike for tiers that say the same kind of thing of several people."""

    name: str
    intervals: Sequence[Interval]
    group: str = ""

    @property
    def has_text(self) -> bool:
        return any(one.text.strip() for one in self.intervals)


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """What one file says: its tiers, and the recording that it says it of, where it names one."""

    tiers: Sequence[Tier]
    audio: str = ""
    findings: Sequence[Finding] = ()


Reader = Callable[[str, str], Annotated]  # location, encoding -> what the file says


def has_files(location: str, names: Sequence[str], extensions: tuple[str, ...]) -> bool:
    """Whether a location is, or holds, files of a format."""
    return any(_is_one(name, extensions) for name in (glimpse(location, names) if names else [location]))


def utterances(
    location: str, options: SourceOptions, extensions: tuple[str, ...], read: Reader
) -> Iterator[Utterance | Finding]:
    """All utterances of a file, or of the files below a folder."""
    is_file = _is_one(location, extensions) and not storage.is_folder(location)
    folder = storage.parent(location) if is_file else location
    files = [location] if is_file else [path for path in storage.list_files(folder) if _is_one(path, extensions)]
    if not files:
        raise SourceError(location, f"there is no {extensions[0]} file below this folder.", "Check the path.")
    yield from _Reading(folder, options, files).utterances(read)


def _is_one(location: str, extensions: tuple[str, ...]) -> bool:
    return location.casefold().endswith(extensions) and not is_litter(location)


class _Reading:
    """One reading of all the files of a format."""

    def __init__(self, folder: str, options: SourceOptions, files: Sequence[str]) -> None:
        self.folder, self.options, self.files = folder, options, files
        self.finder = AudioFinder(audio_folder(folder, options.audio))
        names = [_bare(basename(path)) for path in files]
        self.are_names_unique = len(set(names)) == len(names)
        self.unread: dict[str, str] = {}  # tier -> the first file that has it
        self.is_any_read = False

    def utterances(self, read: Reader) -> Iterator[Utterance | Finding]:
        for location in self.files:
            try:
                yield from self._of_file(location, read(location, self.options.encoding))
            except SonantError as error:
                rule = "unreadable-text"
                yield Finding(rule=rule, place=error.where, problem=error.problem, action=error.action)
        if self.options.tiers and self.unread and not self.is_any_read:
            wanted = ", ".join(self.options.tiers)
            action = suggestion(self.options.tiers[0], self.unread)
            raise SourceError(self.folder, f"no file has a tier called {wanted} with any text.", action)
        if self.unread:
            yield _unread_tiers(self.unread)

    def _of_file(self, location: str, annotated: Annotated) -> Iterator[Utterance | Finding]:
        yield from annotated.findings
        chosen = choose(annotated.tiers, self.options.tiers)
        for tier in annotated.tiers:
            if tier.has_text and tier.name not in {one.name for one, _ in chosen}:
                self.unread.setdefault(tier.name, location)
        speaking = [(one, one.speaker or who) for tier, who in chosen for one in tier.intervals if one.text.strip()]
        if not speaking:
            return
        self.is_any_read = True
        path = path_id(_bare(location), self.folder)
        id = basename(path) if self.are_names_unique else path
        audio = self._audio(path, annotated.audio, location, id)
        if isinstance(audio, Finding):
            yield audio
            return
        speaking.sort(key=lambda pair: (pair[0].start, pair[0].end))
        ends: dict[str | None, float] = {}  # of what each speaker said before
        for number, (one, speaker) in enumerate(speaking, start=1):
            place, name = f"{location}:{one.line}", numbered(id, number)
            if one.start < 0 or one.end <= one.start:
                yield _bad_time(place, name, one)
                continue
            if one.start < ends.get(speaker, 0.0) - _TOLERANCE:
                yield _overlap(place, name, one.start, ends[speaker])
            ends[speaker] = max(one.end, ends.get(speaker, 0.0))
            yield Utterance(
                id=name,
                audio=audio,
                place=place,
                start=one.start,
                seconds=round(one.end - one.start, 9),
                text=one_line(one.text.strip()),
                speaker=speaker,
                split=self.options.split or None,
            )

    def _audio(self, path: str, named: str, location: str, id: str) -> str | Finding:
        """The recording beside the file, or the one that the file names."""
        names = [path, basename(path), *([named] if named else []), _LANGUAGE.sub("", path)]
        found = [self.finder.find(name, place=location, id=id) for name in dict.fromkeys(names)]
        is_settled = (one for one in found if isinstance(one, str) or one.rule != "missing-audio")
        return next(is_settled, found[0])


def choose(tiers: Sequence[Tier], wanted: Sequence[str]) -> list[tuple[Tier, str | None]]:
    """The tiers that hold utterances, each with its speaker where the name of the tier tells.

    `wanted` are names, in which `*` stands for anything; without them it is the first tier that has text, and those
    of its group.
    """
    if not wanted:
        first = next((tier for tier in tiers if tier.has_text), None)
        if first is None:
            return []
        group = [tier for tier in tiers if tier is first or (first.group and tier.group == first.group)]
        return [(tier, tier.name if len(group) > 1 else None) for tier in group]
    chosen: list[tuple[Tier, str | None]] = []
    for tier in tiers:
        matches = (re.fullmatch(_expression(pattern), tier.name, re.IGNORECASE) for pattern in wanted)
        if found := next(filter(None, matches), None):
            chosen.append((tier, found[1].strip() if found.groups() else tier.name))
    is_told = len(chosen) > 1 or any("*" in pattern for pattern in wanted)
    return [(tier, who if is_told else None) for tier, who in chosen]


def _expression(pattern: str) -> str:
    """A pattern whose first `*` is the speaker: `* - words`."""
    parts = [re.escape(part) for part in pattern.split("*")]
    return parts[0] if len(parts) == 1 else parts[0] + "(.*)" + ".*".join(parts[1:])


def _bare(path: str) -> str:
    return path.rpartition(".")[0]


def _bad_time(place: str, id: str, one: Interval) -> Finding:
    problem = f"'{id}' goes from {one.start:g} to {one.end:g} s; an interval starts at 0 or later and ends after that."
    return Finding(rule="bad-time", place=place, problem=problem, action="Correct its times.", id=id)


def _overlap(place: str, id: str, start: float, end: float) -> Finding:
    return Finding(
        rule="overlapping-times",
        place=place,
        problem=f"'{id}' starts at {start:g} s, while what was said before by the same speaker ends at {end:g} s.",
        action="Correct the times, or name the speakers if there are two.",
        id=id,
        is_error=False,
    )


def _unread_tiers(unread: dict[str, str]) -> Finding:
    names = ", ".join(f"'{name}'" for name in list(unread)[:8]) + (" …" if len(unread) > 8 else "")
    return Finding(
        rule="unread-tier",
        place=next(iter(unread.values())),
        problem=f"these tiers hold text that was not read: {names}.",
        action="Name those that hold utterances with --tiers, '*' for any.",
        is_error=False,
    )
