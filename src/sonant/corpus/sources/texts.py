"""Texts without recordings, for the language model: text files, or tables with a column of documents.

A row is a document. One that is longer than a row may be comes in several, which name it in the column `document` and
are numbered in the column `part`; put together they are the document to the character.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from sonant.base import storage
from sonant.base.errors import ConfigError, SourceError
from sonant.corpus.sources.documents import LARGEST, Piece, holds, pieces_of
from sonant.corpus.sources.lines import decode_text
from sonant.corpus.sources.locate import basename, entries, is_litter
from sonant.corpus.sources.naming import in_natural_order, numbered, split_called
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.cells import is_missing, text_of
from sonant.corpus.sources.tables.columns import Meaning, extra_name, folded, meaning_of
from sonant.corpus.sources.tables.labels import Further, Labels
from sonant.corpus.sources.tables.rows import EXTENSIONS, may_be_table, open_table
from sonant.corpus.sources.tables.tabular import Row, Table
from sonant.corpus.utterance import Finding, Utterance

_TEXTS = (".txt", ".text", ".md")
_TABLES = (*EXTENSIONS, ".json")
_COLUMNS = ("content", "document", "body", "article", "story", "sentences")  # beside those known to hold a text
_OURS = ("id", "text", "speaker", "split")  # columns that mean something where nothing is heard


class TextSource:
    """A text file, a table, or a folder of either."""

    name: ClassVar[str] = "text"
    uses: ClassVar[frozenset[str]] = frozenset(
        "table documents columns labels label_separator encoding delimiter missing split".split()
    )

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        if not names:
            return _is_text(location)
        files = [name for name in names if not name.endswith("/") and not is_litter(name) and "." in name]
        return any(map(_is_text, files)) and all(map(_is_text, files))

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        folder, files = self._files()
        splits = {path: _split_of(path[len(folder) :].strip("/")) for path in files}
        has_splits = len(files) > 1 and all(splits.values())
        for path in files:
            name = _bare(path[len(folder) :].strip("/"))
            split = self.options.split or (splits[path] if has_splits else None)
            if _is_text(path):
                yield from self._text_file(path, name, split)
            else:
                yield from self._table(path, name, split)

    def vocabulary(self) -> list[str] | None:
        return None

    def _files(self) -> tuple[str, list[str]]:
        """The folder that names start from, and every file to read."""
        if self.options.table:
            return self.location, [storage.join(self.location, self.options.table)]
        if _is_text(self.location) or may_be_table(self.location) or not entries(self.location):
            return storage.parent(self.location), [self.location]
        found = [path for path in storage.list_files(self.location) if not is_litter(path)]
        texts, tables = list(filter(_is_text, found)), list(filter(_is_table, found))
        if texts and tables:
            problem = f"the folder holds texts ('{basename(texts[0])}') and tables ('{basename(tables[0])}')."
            raise SourceError(self.location, problem, "Name the file to read, or one table with --table.")
        if not texts and not tables:
            raise SourceError(self.location, "there is neither text nor table below this folder.", "Check the path.")
        return self.location, sorted(texts or tables, key=in_natural_order)

    def _text_file(self, location: str, name: str, split: str | None) -> Iterator[Utterance | Finding]:
        text = decode_text(location, self.options.encoding)
        yield from text.findings
        kind = holds(text) if self.options.documents == "auto" else self.options.documents
        for piece in pieces_of(text.blocks(LARGEST), kind):
            document = name if kind == "file" else numbered(name, piece.document)
            yield _row(Utterance(id=document, audio=None, place=f"{location}:{piece.line}", split=split), piece)

    def _table(self, location: str, name: str, split: str | None) -> Iterator[Utterance | Finding]:
        if self.options.documents != "auto":
            raise ConfigError("--documents", "in a table every row is a document.", "Leave it out.")
        named = [*self.options.columns.values(), *self.options.labels]
        table = open_table(location, encoding=self.options.encoding, delimiter=self.options.delimiter, named=named)
        yield from table.findings
        yield from _TableReader(table, self.options, name, split).rows()


class _TableReader:
    """The documents of one table."""

    def __init__(self, table: Table, options: SourceOptions, name: str, split: str | None) -> None:
        self.table, self.options, self.name, self.split = table, options, name, split
        meaning = meaning_of(table.location, table.columns, options, has_header=table.has_header)
        self.columns = _ours(table, meaning)
        self.labels = Labels(meaning.labels, options)
        used = {*self.columns.values(), *meaning.labels}
        self.further = Further({_extra_name(one): one for one in table.columns if one not in used}, options.missing)

    def rows(self) -> Iterator[Utterance | Finding]:
        for row in self.table.rows():
            if isinstance(row, Row):
                self.labels.learn(row.cells)
                self.further.learn(row.cells)
        number = 0
        for row in self.table.rows():
            if isinstance(row, Finding):
                yield row
                continue
            number += 1
            yield from self._document(row, number)

    def _document(self, row: Row, number: int) -> Iterator[Utterance]:
        bare = Utterance(
            id=self._cell(row, "id") or numbered(self.name, number),
            audio=None,
            place=row.place,
            speaker=self._cell(row, "speaker"),
            split=self.split or self._cell(row, "split"),
            labels=self.labels.read(row.cells),
            extra=self.further.read(row.cells),
        )
        cell = row.cells.get(self.columns["text"])
        if is_missing(cell, self.options.missing):
            yield bare  # preparation says what is wrong with a document that has no text
            return
        text = cell if isinstance(cell, str) else text_of(cell)
        pieces = list(pieces_of([text.replace("\r\n", "\n").replace("\r", "\n")], "file"))
        yield from (_row(bare, piece) for piece in pieces) if pieces else [bare]

    def _cell(self, row: Row, target: str) -> str | None:
        cell = row.cells.get(self.columns.get(target, ""))
        return None if is_missing(cell, self.options.missing) else text_of(cell)


def _ours(table: Table, meaning: Meaning) -> dict[str, str]:
    """The columns that a document has; of the others none is heard, so that they are kept as they are."""
    columns = {target: name for target, name in meaning.columns.items() if target in _OURS}
    if "text" not in columns:
        by_folded = {folded(name): name for name in reversed(table.columns)}
        known = [by_folded[name] for name in _COLUMNS if name in by_folded]
        found = known or (table.columns if len(table.columns) == 1 else ())
        if not found:
            problem = f"no column is known to hold the text; the columns are {', '.join(table.columns)}."
            raise SourceError(table.location, problem, "Say which one does: --columns text=COLUMN")
        columns["text"] = found[0]
    return columns


def _extra_name(name: str) -> str:
    return f"source_{name}" if name in ("document", "part") else extra_name(name)


def _row(document: Utterance, piece: Piece) -> Utterance:
    if piece.is_whole:
        return replace(document, text=piece.text)
    about: dict[str, Any] = {"document": document.id, "part": piece.part}
    return replace(document, id=numbered(document.id, piece.part), text=piece.text, extra={**document.extra, **about})


def _is_text(location: str) -> bool:
    return _plain(location).endswith(_TEXTS)


def _is_table(location: str) -> bool:
    return _plain(location).endswith(_TABLES)


def _plain(location: str) -> str:
    return location.partition("?")[0].casefold().removesuffix(".gz")


def _bare(path: str) -> str:
    """The path without the extensions of texts and tables."""
    path = path.partition("?")[0]
    path = path[: -len(".gz")] if path.casefold().endswith(".gz") else path
    end = next((end for end in (*_TEXTS, *_TABLES) if path.casefold().endswith(end)), "")
    return path.removesuffix(path[len(path) - len(end) :])


def _split_of(path: str) -> str | None:
    """The split that a file is named after, or the folder that it lies in."""
    top, below, _ = path.partition("/")
    return split_called(top if below else _bare(path))
