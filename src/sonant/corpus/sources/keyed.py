"""Kaldi's tables: a key on each line, and what belongs to it. Sorted ones are read in step, others held in memory.

texts = Lookup(KeyedFile("data/train/text"), in_order=True)
line = texts.take("utt-0001")      # Keyed(key, value, number), or None
for line in texts.rest(): ...      # those that nobody asked for
yield from texts.findings          # what is wrong with the file itself
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from sonant.corpus.sources.lines import decode_text
from sonant.corpus.utterance import Finding

_BLANKS = re.compile(r"[ \t]+")  # other spaces belong to the text


class Keyed(NamedTuple):
    """A line: its key, the rest of it without blanks around, and its number."""

    key: str
    value: str
    number: int


class KeyedFile:
    """A text file of keyed lines, read anew by each iteration."""

    def __init__(self, location: str, encoding: str = "") -> None:
        self.location = location
        self.text = decode_text(location, encoding)

    def place(self, number: int) -> str:
        return f"{self.location}:{number}"

    def __iter__(self) -> Iterator[Keyed]:
        for number, line in self.text.numbered():
            if line := line.strip(" \t"):
                key, _, value = _BLANKS.sub(" ", line, count=1).partition(" ")
                yield Keyed(key, value, number)

    @property
    def is_ordered(self) -> bool:
        """Whether each key is larger than the one before, as `LC_ALL=C sort` leaves them."""
        return self._survey[0]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the file whatever its lines mean."""
        return self._survey[1]

    @cached_property
    def _survey(self) -> tuple[bool, tuple[Finding, ...]]:
        last, is_ordered, number, num_empty, first_empty = "", True, 0, 0, 0
        for line in self:
            if line.number > number + 1:
                first_empty = first_empty or number + 1
                num_empty += line.number - number - 1
            is_ordered &= line.key > last
            last, number = line.key, line.number
        empty = [self._empty(first_empty, num_empty)] if num_empty else []
        return is_ordered, (*self.text.findings, *empty)

    def _empty(self, first: int, count: int) -> Finding:
        problem = "the line is empty." if count == 1 else f"{count} lines are empty, this is the first."
        action = "Remove them: Kaldi itself stops there."
        return Finding(rule="bad-line", place=self.place(first), problem=problem, action=action, is_error=False)

    def twice(self, line: Keyed, first: int) -> Finding:
        """A key that has a line already."""
        return Finding(
            rule="bad-line",
            place=self.place(line.number),
            problem=f"'{line.key}' has a line already, at {self.place(first)}.",
            action="Remove one of the two.",
            id=line.key,
        )


def held(file: KeyedFile) -> tuple[dict[str, Keyed], list[Finding]]:
    """All lines by key, of equal ones the first, and a finding for each of the others."""
    lines: dict[str, Keyed] = {}
    repeated = []
    for line in file:
        first = lines.setdefault(line.key, line)
        if first is not line:
            repeated.append(file.twice(line, first.number))
    return lines, repeated


class Lookup:
    """Takes lines by key. `in_order` promises that keys are asked for in ascending order."""

    def __init__(self, file: KeyedFile, *, in_order: bool) -> None:
        self.file = file
        self.findings = list(file.findings)
        self._passed: list[Keyed] = []  # asked for by nobody
        self._held: dict[str, Keyed] = {}
        self._ahead: Iterator[Keyed] = iter(())
        if in_order and file.is_ordered:
            self._ahead = iter(file)
        else:
            self._held, repeated = held(file)
            self.findings += repeated
        self._next = next(self._ahead, None)

    def take(self, key: str) -> Keyed | None:
        """The line of a key, once."""
        while self._next is not None and self._next.key < key:
            self._passed.append(self._next)
            self._next = next(self._ahead, None)
        if self._next is not None and self._next.key == key:
            found, self._next = self._next, next(self._ahead, None)
            return found
        return self._held.pop(key, None)

    def rest(self) -> Iterator[Keyed]:
        """The lines that nobody asked for."""
        yield from self._passed
        if self._next is not None:
            yield self._next
        yield from self._ahead
        yield from self._held.values()
