"""Labels of a source: every cell is seen once before any is read, so that a label is one kind throughout.

A label is a number if all its cells are numbers, a list of strings if any cell holds several, else a string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sonant.corpus.sources.cells import is_missing, number_of, text_of
from sonant.corpus.sources.options import SourceOptions


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


def further(cells: Mapping[str, Any], columns: Mapping[str, str], missing: Iterable[str]) -> dict[str, Any]:
    """Further columns, kept as they are: text stays text, numbers of JSON, Parquet and spreadsheets stay numbers."""
    return {name: _kept(cells.get(column), frozenset(missing)) for name, column in columns.items()}


def _kept(cell: Any, missing: frozenset[str]) -> Any:
    if is_missing(cell, missing):
        return None
    if isinstance(cell, list) and all(isinstance(part, str) for part in cell):
        return cell
    return cell if isinstance(cell, int | float) and not isinstance(cell, bool) else text_of(cell)
