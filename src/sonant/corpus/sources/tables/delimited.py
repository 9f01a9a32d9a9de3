"""Delimited text: comma, semicolon, tab or pipe, quoted or not, read so that one wrong quote costs one row."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from sonant.base.errors import ConfigError, SourceError
from sonant.corpus.sources.lines import Text
from sonant.corpus.sources.tables.tabular import Row, Table, name_columns, wrong_width
from sonant.corpus.utterance import Finding

_SPELT = {"\t": "a tab", ",": "a comma", ";": "a semicolon", "|": "a bar"}
_WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "bar": "|", "space": " "}
_NONE = "\x1f"  # a table of one column; no text holds this character
_SAMPLE_LINES = 300


def open_delimited(text: Text, delimiter: str, named: Collection[str]) -> Table:
    """The table in a text file; an empty delimiter is recognised."""
    chosen, skipped = _delimiter(text, delimiter)
    header = next(_records(text.with_ends(), chosen, None, skipped), None)
    if header is None:
        raise SourceError(text.location, "the table is empty.", "Give a table with a header and rows.")
    number, cells = header
    columns, has_header = name_columns(f"{text.location}:{number}", cells, named)

    def rows() -> Iterator[Row | Finding]:
        for line, cells in _records(text.with_ends(), chosen, len(columns), number if has_header else skipped):
            place = f"{text.location}:{line}"
            if len(cells) == len(columns):
                yield Row(place, dict(zip(columns, cells, strict=True)))
            else:
                yield wrong_width(place, len(cells), columns, _SPELT.get(chosen, f"'{chosen}'"))

    return Table(text.location, columns, rows, has_header, text.findings)


def _delimiter(text: Text, told: str) -> tuple[str, int]:
    """The delimiter, and how many lines stand before the header."""
    sample = list(islice(text.with_ends(), _SAMPLE_LINES))
    told = _WORDS.get(told.casefold(), told)
    if len(told) > 1:
        raise ConfigError("--delimiter", f"'{told}' is more than one character.", "Give one character, or 'tab'.")
    first = sample[0].strip() if sample else ""
    if first.casefold().startswith("sep=") and len(first) == 5:  # what Excel writes for itself
        return told or first[4], 1
    best = max(_SPELT, key=lambda delimiter: _agreement(sample, delimiter))
    return told or (best if _agreement(sample, best) > (0, 0) else _NONE), 0


def _agreement(sample: Iterable[str], delimiter: str) -> tuple[float, int]:
    """The share of rows that have as many cells as the first one, and that number; nothing for a single cell."""
    widths = [len(cells) for _, cells in _records(sample, delimiter, None)]
    if not widths or widths[0] < 2:
        return 0.0, 0
    return widths.count(widths[0]) / len(widths), widths[0]


class _Lines:
    """Numbered physical lines, of which some may be put back."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = enumerate(lines, start=1)
        self._ahead: deque[tuple[int, str]] = deque()

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self

    def __next__(self) -> tuple[int, str]:
        return self._ahead.popleft() if self._ahead else next(self._lines)

    def put_back(self, lines: Iterable[tuple[int, str]]) -> None:
        self._ahead.extendleft(reversed(list(lines)))


def _records(
    lines: Iterable[str], delimiter: str, width: int | None, skipped: int = 0
) -> Iterator[tuple[int, list[str]]]:
    """First physical line and cells of each row that is not blank."""
    numbered = _Lines(lines)
    for number, line in numbered:
        cells = _quoted(line, numbered, delimiter, width) if '"' in line else line.rstrip("\r\n").split(delimiter)
        cells = [cell.strip() for cell in cells]
        if width is not None and not any(cells[width:]):
            del cells[width:]  # delimiters that hang at the end
        if number > skipped and any(cells):
            yield number, cells


def _quoted(line: str, following: _Lines, delimiter: str, width: int | None) -> list[str]:
    """Cells of a row with quotes, which may go on over further lines; taken as they stand where they quote nothing."""
    taken: list[tuple[int, str]] = []

    def feed() -> Iterator[str]:
        yield line
        for number, more in following:
            taken.append((number, more))
            yield more

    literal = line.rstrip("\r\n").split(delimiter)
    try:
        cells = next(csv.reader(feed(), delimiter=delimiter, strict=True, skipinitialspace=delimiter != " "))
    except csv.Error:  # never closed, closed in the middle of a cell, or longer than 128 kB
        cells = []
    if not cells or (len(cells) != width and len(literal) == width):
        following.put_back(taken)
        return literal
    return cells
