"""The rows of all parts of a dataset become utterances, as if they were one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.corpus.sources.arrow.columns import Columns, columns_of
from sonant.corpus.sources.arrow.layout import is_data_file
from sonant.corpus.sources.arrow.part import Part
from sonant.corpus.sources.arrow.tokens import Tokens
from sonant.corpus.sources.locate import AudioFinder, basename
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.cells import CellError, present, text_of
from sonant.corpus.sources.tables.columns import Meaning, meaning_of
from sonant.corpus.sources.tables.labels import Further, Labels
from sonant.corpus.sources.tables.tabular import Row, Table
from sonant.corpus.sources.tables.utterances import TableReader
from sonant.corpus.utterance import Finding, Utterance

# Cells that are made here; a column of somebody's is not called so.
_ADDRESS, _ID, _SPLIT, _TOKENS, _SAMPLES = "\0address", "\0id", "\0split", "\0tokens", "\0samples"
_SECONDS_APART = 0.01  # a length in seconds is rounded


class Reading:
    """Two passes over what is light in the rows: labels learn, then utterances are given."""

    def __init__(self, location: str, parts: Sequence[Part], options: SourceOptions, tokens: Tokens) -> None:
        self.parts, self.options, self.tokens = parts, options, tokens
        self.root = location if len(parts) > 1 or parts[0].location != location else storage.parent(location)
        self.columns = _columns(parts, options)
        meaning = _meaning(parts[0].location, self.columns, options)
        self.labels, self.further = Labels(meaning.labels, options), Further(meaning.extra, options.missing)
        table = Table(location, (_ADDRESS, _ID, *self.columns.light), self._rows)
        self.reader = TableReader(
            table, meaning, options.split, self.labels, self.further, AudioFinder(self.root), options
        )

    def rows(self) -> Iterator[Utterance | Finding]:
        num_rows, num_unlike = 0, 0
        for row in self._rows():
            self.labels.learn(row.cells)
            self.further.learn(row.cells)
            num_rows += 1
            num_unlike += self._unlike(row.cells) is not None
        are_counts = num_unlike < num_rows  # else the column counts something else
        if num_rows and not are_counts:
            yield _no_counts(self.parts[0], self.columns.lengths or "")
        if num_rows and self.columns.tokens and self.tokens.symbols is None:
            yield _nameless(self.parts[0], self.columns.tokens)
        for row in self._rows():
            yield self._utterance(row, are_counts=are_counts)

    def _rows(self) -> Iterator[Row]:
        for part in self.parts:
            name = _name_below(part.location, self.root)
            for first, batch in part.batches(self._columns_read):
                yield from self._rows_of(part, name, first, batch)

    @property
    def _columns_read(self) -> list[str]:
        """Of the recordings only how long they are is looked at, and only if a column tells it too."""
        tokens = [name for name in (self._tokens_column,) if name]
        return [*self.columns.light, *tokens, *([self.columns.audio] if self.columns.lengths else [])]

    @property
    def _tokens_column(self) -> str | None:
        """`labels.input_ids` may be a column of its own, or lie in one."""
        tokens = self.columns.tokens
        return tokens if tokens is None or not self.columns.are_tokens_inside else tokens.partition(".")[0]

    def _rows_of(self, part: Part, name: str, first: int, batch: pa.RecordBatch) -> Iterator[Row]:
        lengths = pc.list_value_length(batch[self.columns.audio]).to_pylist() if self.columns.lengths else ()
        tokens = self._tokens_of(batch)
        light = batch.select(list(self.columns.light)).to_pylist()
        for offset, cells in enumerate(light):
            number = first + offset
            made: dict[str, Any] = {
                _ADDRESS: part.address(number, self.columns.audio),
                _ID: f"{name}/{number}",
                _SPLIT: part.split,
            }
            made[_TOKENS] = tokens[offset] if tokens else None
            made[_SAMPLES] = lengths[offset] if lengths else None
            yield Row(part.place(number), self._with_names(cells) | made)

    def _tokens_of(self, batch: pa.RecordBatch) -> list[list[int | None] | None] | None:
        column = self._tokens_column
        if column is None:
            return None
        cells: list[Any] = batch[column].to_pylist()
        if self.columns.are_tokens_inside:
            inner = (self.columns.tokens or "").partition(".")[2]
            return [cell and cell[inner] for cell in cells]
        return cells

    def _with_names(self, cells: dict[str, Any]) -> dict[str, Any]:
        """The same cells with the names of classes for their numbers; -1 is no class."""
        for column, names in self.columns.classes.items():
            if column in cells:
                cells[column] = _named(cells[column], names)
        return cells

    def _unlike(self, cells: Mapping[str, Any]) -> str | None:
        """How the length that a row tells differs from what it holds."""
        said = cells.get(self.columns.lengths) if self.columns.lengths else None
        found = cells[_SAMPLES]
        if said is None or found is None or said == found:
            return None
        if abs(said - found / (self.columns.sample_rate or 1)) <= _SECONDS_APART:
            return None
        return f"its '{self.columns.lengths}' is {said:g}, but it holds {found} samples"

    def _utterance(self, row: Row, *, are_counts: bool) -> Utterance | Finding:
        id = text_of(row.cells.get(self.reader.meaning.columns["id"])) or row.cells[_ID]
        try:
            if are_counts and (unlike := self._unlike(row.cells)):
                raise CellError("unlike-length", unlike, "Leave the row out, or remove the column.")
            tokens = self.tokens.read(row.cells[_TOKENS])
            cells = present(row.cells, self.options.missing)
            utterance = self.reader.utterance(row.place, id, row.cells[_ADDRESS], cells)
        except CellError as error:
            return error.finding(row.place, id)
        has_text = utterance.text is not None
        return replace(
            utterance,
            text=utterance.text if has_text else self.tokens.text(tokens),
            split=utterance.split or row.cells[_SPLIT],
            tokens=tokens,
            sample_rate=self.columns.sample_rate,
        )


def _columns(parts: Sequence[Part], options: SourceOptions) -> Columns:
    """The columns of the first part, which all others must have."""
    first = parts[0]
    schema = first.schema()
    columns = columns_of(first.location, schema, options)
    needed = {columns.audio, *columns.light, *([columns.lengths] if columns.lengths else [])}
    for part in parts[1:]:
        other = part.schema()
        for name in (one for one in schema.names if one in needed and other.names):
            if name not in other.names:
                problem = f"it has no column '{name}', which {first.location} has."
                raise SourceError(part.location, problem, "Save both with the same columns, or prepare them apart.")
            if name == columns.audio and other.field(name).type != schema.field(name).type:
                problem = f"its column '{name}' holds {other.field(name).type}, not {schema.field(name).type}."
                raise SourceError(part.location, problem, "Save both with the same features, or prepare them apart.")
    return columns


def _meaning(location: str, columns: Columns, options: SourceOptions) -> Meaning:
    """What the light columns are for; the recordings and, if need be, the ids are told here."""
    told = {target: name for target, name in options.columns.items() if target not in ("audio", "tokens")}
    light = [name for name in columns.light if name != columns.lengths]
    meaning = meaning_of(location, [_ADDRESS, *light], replace(options, columns={**told, "audio": _ADDRESS}))
    return replace(meaning, columns={"id": _ID, **meaning.columns})


def _name_below(location: str, root: str) -> str:
    """What a part is called: its path without extension."""
    start = root.rstrip("/") + "/"
    below = location[len(start) :] if location.startswith(start) else basename(location)
    return below.rpartition(".")[0] if is_data_file(below) else below


def _named(cell: Any, names: Sequence[str]) -> Any:
    if isinstance(cell, list):
        return [_named(one, names) for one in cell]
    return names[cell] if isinstance(cell, int) and 0 <= cell < len(names) else None


def _no_counts(part: Part, column: str) -> Finding:
    return Finding(
        rule="unlike-length",
        place=part.place(0),
        problem=f"the column '{column}' is nowhere the number of samples; it is not used.",
        action="Nothing needs to be done, unless it was meant so.",
        is_error=False,
    )


def _nameless(part: Part, column: str) -> Finding:
    return Finding(
        rule="nameless-tokens",
        place=part.place(0),
        problem=f"'{column}' holds token ids, of which nobody knows the text.",
        action="Give the vocabulary that they were made with: --vocabulary FILE.",
        is_error=False,
    )
