"""What a table is, whatever file it came from: columns with names, and rows that know their place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonant.base.errors import SourceError
from sonant.corpus.sources.locate import is_audio
from sonant.corpus.sources.tables.cells import number_of, text_of
from sonant.corpus.sources.tables.columns import is_known
from sonant.corpus.utterance import Finding


@dataclass(frozen=True, slots=True)
class Row:
    """One row; cells that its line lacks are absent."""

    place: str  # "recordings.csv:42", its first physical line
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table whose columns are known. Its rows are read anew by each call of `rows`, never held."""

    location: str
    columns: tuple[str, ...]
    rows: Callable[[], Iterator[Row | Finding]]
    has_header: bool = True  # without one the columns are called "1", "2", …
    findings: tuple[Finding, ...] = ()


def name_columns(place: str, cells: Sequence[Any], named: Collection[str]) -> tuple[tuple[str, ...], bool]:
    """The names that a first row gives, and whether it is a header at all; `named` are those that the user spoke of."""
    names = [text_of(cell) for cell in cells]
    if not _is_header(names, named):
        return tuple(str(number) for number in range(1, len(names) + 1)), False
    names = [name or str(number) for number, name in enumerate(names, 1)]  # the nameless index that pandas writes
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SourceError(place, f"the header names the column '{twice}' twice.", "Rename or remove one of the two.")
    return tuple(names), True


def wrong_width(place: str, found: int, columns: Sequence[str], delimiter: str) -> Finding:
    """A row that cannot be assigned to its columns."""
    return Finding(
        rule="bad-line",
        place=place,
        problem=f"the row has {found} cell{'s' * (found != 1)}, but the table has {len(columns)} columns.",
        action=f'Write cells that hold {delimiter} in double quotes ("…"), and close every quote.',
    )


def _is_header(names: Sequence[str], named: Collection[str]) -> bool:
    if any(is_audio(name) for name in names):
        return False
    if any(name.isdecimal() and name not in names for name in named):
        return False  # somebody counts the columns
    if any(name in named or is_known(name) for name in names):
        return True
    return not any(number_of(name) is not None or len(name.split()) > 5 for name in names)
