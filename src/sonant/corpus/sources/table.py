"""A table of recordings: CSV, TSV, JSON, Parquet or a spreadsheet, with any column names, beside its recordings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.corpus.sources.locate import AudioFinder, audio_folder, basename, entries, is_litter
from sonant.corpus.sources.missing import unless_all_are_missing
from sonant.corpus.sources.naming import split_called
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.cells import text_of
from sonant.corpus.sources.tables.columns import Meaning, folded, meaning_of
from sonant.corpus.sources.tables.labels import Further, Labels
from sonant.corpus.sources.tables.rows import is_table, may_be_table, open_table
from sonant.corpus.sources.tables.tabular import Row, Table
from sonant.corpus.sources.tables.utterances import TableReader, survey
from sonant.corpus.utterance import Finding, Utterance


class TableSource:
    """A table, or a folder that holds one (or one for each split)."""

    name: ClassVar[str] = "table"
    uses: ClassVar[frozenset[str]] = frozenset(
        "table audio columns labels label_separator encoding delimiter missing split".split()
    )

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        return any(map(_is_candidate, names)) if names else is_table(location)

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        names = entries(self.location) if not may_be_table(self.location) else []
        if not names:
            folder, tables = storage.parent(self.location), {self.location: ""}
        elif self.options.table:
            folder, tables = self.location, {storage.join(self.location, self.options.table): ""}
        else:
            folder, tables = self.location, _tables_in(self.location, names, self.options)
        yield from read_tables(tables, audio_folder(folder, self.options.audio), self.options)

    def vocabulary(self) -> list[str] | None:
        return None


def _is_candidate(name: str) -> bool:
    return is_table(name) and not name.endswith("/") and not is_litter(name)


def _tables_in(folder: str, names: Sequence[str], options: SourceOptions) -> dict[str, str]:
    """The tables of a folder, each with the split it is for: the only one, or `metadata`, or one for each split."""
    joined = {basename(spec.rpartition("@")[0] or spec) for spec in options.annotations}
    found = [name for name in names if _is_candidate(name) and name not in joined]
    metadata = [name for name in found if os.path.splitext(name)[0] == "metadata"]
    if len(found) == 1 or len(metadata) == 1:
        return {storage.join(folder, (metadata or found)[0]): ""}
    splits = {name: split_called(name) for name in found}
    if found and all(splits.values()):
        return {storage.join(folder, name): split or "" for name, split in splits.items()}
    problem = f"the folder holds {len(found)} tables ({', '.join(found[:8])})." if found else "it holds no table."
    raise SourceError(folder, problem, "Name the one to read with --table.")


def read_tables(tables: Mapping[str, str], folder: str, options: SourceOptions) -> Iterator[Utterance | Finding]:
    """The rows of tables, each with the split of its rows; `folder` is where names of recordings start from."""
    named = [*options.columns.values(), *options.labels]
    opened: list[tuple[Table, Meaning, str]] = []
    for location, split in tables.items():
        table = open_table(location, encoding=options.encoding, delimiter=options.delimiter, named=named)
        opened.append((table, _meaning(table, options), split))
    yield from read_opened(opened, folder, options)


def read_opened(
    opened: Sequence[tuple[Table, Meaning, str]], folder: str, options: SourceOptions, also: Sequence[str] = ()
) -> Iterator[Utterance | Finding]:
    """The rows of understood tables, each with the split of its rows; recordings are looked for in `also` too."""
    labels = Labels(dict.fromkeys(name for _, meaning, _ in opened for name in meaning.labels), options)
    further = [Further(meaning.extra, options.missing) for _, meaning, _ in opened]
    are_grouped = [survey(one[0], one[1], labels, more) for one, more in zip(opened, further, strict=True)]
    finder = AudioFinder(folder, also)
    for (table, meaning, split), more, is_grouped in zip(opened, further, are_grouped, strict=True):
        yield from table.findings
        reader = TableReader(table, meaning, options.split or split, labels, more, finder, options)
        yield from unless_all_are_missing(reader.utterances(is_grouped), table.location, folder)


def _meaning(table: Table, options: SourceOptions) -> Meaning:
    meaning = meaning_of(table.location, table.columns, options, has_header=table.has_header)
    if "audio" not in meaning.columns and "id" not in meaning.columns:
        problem = f"no column is known to name the recording; the columns are {', '.join(table.columns)}."
        raise SourceError(table.location, problem, "Say which one does: --columns audio=COLUMN")
    name = meaning.columns.get("id", "")
    if folded(name) == "utterance" and "id" not in options.columns and "text" not in meaning.columns:
        rows = (row for row in table.rows() if isinstance(row, Row))
        if any(" " in text_of(row.cells.get(name)) for row, _ in zip(rows, range(50), strict=False)):
            columns = {target: column for target, column in meaning.columns.items() if target != "id"}
            return Meaning(columns | {"text": name}, meaning.labels, meaning.extra)  # it is what was uttered
    return meaning
