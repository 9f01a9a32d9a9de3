"""Labels and further columns of a source: all cells are seen before any is read, so that a column is of one kind.

A label is a number if all its cells are numbers, a list of strings if any cell holds several, else a string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.cells import is_missing, number_of, text_of


class Labels:
    """Learns the kinds of some labels, then reads them."""

    def __init__(self, names: Iterable[str], options: SourceOptions) -> None:
        self.names = tuple(names)
        self._missing, self._separator = frozenset(options.missing), options.label_separator
        self._words: set[str] = set()  # labels of which a cell was no number
        self._lists: set[str] = set()

    def learn(self, cells: Mapping[str, Any]) -> None:
        """Takes note of what the labels of one row are."""
        for name in self.names:
            cell = cells.get(name)
            if is_missing(cell, self._missing):
                continue
            if isinstance(cell, list) or (self._separator and self._separator in text_of(cell)):
                self._lists.add(name)
            elif name not in self._words and number_of(cell) is None:
                self._words.add(name)

    def read(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """The labels of one row; None where it has no value."""
        return {name: self._value(name, cells.get(name)) for name in self.names}

    def _value(self, name: str, cell: Any) -> Any:
        if is_missing(cell, self._missing):
            return None
        if name in self._lists:
            parts = cell if isinstance(cell, list) else text_of(cell).split(self._separator or "\n")
            return [text_of(part) for part in parts if not is_missing(part, self._missing)]
        return text_of(cell) if name in self._words else number_of(cell)


class Further:
    """Keeps columns as they are: numbers of JSON, Parquet and spreadsheets stay numbers, if all of a column are."""

    def __init__(self, columns: Mapping[str, str], missing: Iterable[str]) -> None:
        self.columns, self._missing = columns, frozenset(missing)  # name in the manifest -> column of the source
        self._words: set[str] = set()

    def learn(self, cells: Mapping[str, Any]) -> None:
        """Takes note of what the columns of one row are."""
        for name, column in self.columns.items():
            cell = cells.get(column)
            if name not in self._words and not _is_number(cell) and not is_missing(cell, self._missing):
                self._words.add(name)

    def read(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of one row; None where it has no value."""
        return {name: self._value(name, cells.get(column)) for name, column in self.columns.items()}

    def _value(self, name: str, cell: Any) -> Any:
        if is_missing(cell, self._missing):
            return None
        if isinstance(cell, list) and all(isinstance(part, str) for part in cell):
            return cell
        return text_of(cell) if name in self._words else cell


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)
