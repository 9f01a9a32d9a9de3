"""Where documents begin and end in running text, and where a long one is cut, so that no row outgrows memory.

    file     the whole file is one text: its parts, one after the other, are the file to the character
    block    a document lies between blank lines
    line     a document is a line; blank lines are none

Parts of a document, put together, are the document. Text streams through; no more than one part is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import NamedTuple

from sonant.corpus.sources.lines import Text
from sonant.corpus.sources.options import Documents

LARGEST = 1 << 15  # characters of a part: a row of the manifest is never larger
_SAMPLE = 64  # parts of a file that are looked at to see what it holds
_LONG = 1000  # characters; shorter blocks are paragraphs, speeches or verses of one text


class Piece(NamedTuple):
    """A document, or a part of a long one."""

    line: int  # in which it begins
    document: int  # counted from 1
    part: int  # counted from 1
    is_last: bool
    text: str

    @property
    def is_whole(self) -> bool:
        return self.part == 1 and self.is_last


class _Line(NamedTuple):
    """A line with its end; of a line that is longer than a part, a stretch."""

    number: int
    text: str
    is_blank: bool  # no stretch is: what it belongs to is not


def pieces_of(blocks: Iterable[str], kind: Documents) -> Iterator[Piece]:
    """The documents of a text that comes in stretches of any size."""
    number = 0
    for (is_between, _), lines in groupby(_lines(blocks), _DOCUMENT[kind]):
        if not is_between:
            number += 1
            yield from _pieces(lines, number, keeps_end=kind == "file")


def holds(text: Text) -> Documents:
    """What a file seems to hold: documents if its blocks are mostly long, else one text."""
    sample = islice(text.blocks(LARGEST), _SAMPLE)
    lengths = sorted(len(piece.text) for piece in pieces_of(sample, "block") if piece.part == 1)
    return "block" if len(lengths) > 1 and lengths[len(lengths) // 2] >= _LONG else "file"


# What lines of one document have in common: that they are not between documents, and a number.
_DOCUMENT: dict[str, Callable[[_Line], tuple[bool, int]]] = {
    "file": lambda line: (False, 0),
    "block": lambda line: (line.is_blank, 0),
    "line": lambda line: (line.is_blank, line.number),
}


def _lines(blocks: Iterable[str]) -> Iterator[_Line]:
    """The lines of a text; one of more than a part comes in stretches, cut behind a space where there is one."""
    number, rest, is_begun = 1, "", False
    for block in blocks:
        *lines, rest = (rest + block).split("\n")
        for line in lines:
            stretches = _stretches(line + "\n")
            is_blank = not is_begun and len(stretches) == 1 and not line.strip()
            yield from (_Line(number, stretch, is_blank) for stretch in stretches)
            number, is_begun = number + 1, False
        *long, rest = _stretches(rest) or [""]
        yield from (_Line(number, stretch, False) for stretch in long)
        is_begun = is_begun or bool(long)
    if rest:
        yield _Line(number, rest, not is_begun and not rest.strip())


def _stretches(line: str) -> list[str]:
    found = []
    while len(line) > LARGEST:
        cut = line.rfind(" ", LARGEST // 2, LARGEST) + 1 or LARGEST
        found.append(line[:cut])
        line = line[cut:]
    return [*found, line] if line else found


def _pieces(lines: Iterable[_Line], document: int, *, keeps_end: bool) -> Iterator[Piece]:
    """The parts of one document; the one before is held back, since blank lines at the end belong to it."""
    held: Piece | None = None
    for line, text in _parts(lines):
        if held and not text.strip():
            held = held._replace(text=held.text + text)
            continue
        if held:
            yield held
        held = Piece(line, document, held.part + 1 if held else 1, False, text)
    if held and held.text.strip():
        yield held._replace(is_last=True, text=held.text if keeps_end else held.text.removesuffix("\n"))


def _parts(lines: Iterable[_Line]) -> Iterator[tuple[int, str]]:
    """Stretches of at most so many characters, ended by a blank line if one is in their second half."""
    held: list[_Line] = []
    size = 0
    for line in lines:
        if size + len(line.text) > LARGEST and any(one.text.strip() for one in held):
            cut = _best_cut(held)
            yield _joined(held[:cut])
            held = held[cut:]
            size = sum(len(one.text) for one in held)
        held.append(line)
        size += len(line.text)
    if held:
        yield _joined(held)


def _best_cut(held: list[_Line]) -> int:
    behind = 0
    for cut in range(len(held) - 1, 0, -1):
        behind += len(held[cut].text)
        if behind > LARGEST // 2:
            break
        if held[cut - 1].is_blank and any(one.text.strip() for one in held[:cut]):
            return cut
    return len(held)


def _joined(lines: list[_Line]) -> tuple[int, str]:
    return lines[0].number, "".join(one.text for one in lines)
