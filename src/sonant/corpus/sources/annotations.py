"""Tables of annotations joined to any source: scores by utterance, facts by speaker.

    scores.csv                      joined by id (or, where it has no such column, by the name of the recording)
    speakers.json@speaker           joined by the speaker; any other column of the source will do
    ages.csv@speaker=client         joined by the speaker, which the table calls `client`

Columns that are asked for as labels become labels; `text`, `speaker` and `split` fill gaps; the others are kept.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import ConfigError, SourceError
from sonant.base.names import nearest, suggestion
from sonant.corpus.sources.locate import extension, is_audio
from sonant.corpus.sources.naming import WHOLE_FOLDER
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.cells import is_missing, present, text_of
from sonant.corpus.sources.tables.columns import KNOWN, extra_name, find_column, folded
from sonant.corpus.sources.tables.labels import Further, Labels
from sonant.corpus.sources.tables.rows import open_table
from sonant.corpus.sources.tables.tabular import Row, Table
from sonant.corpus.utterance import Finding, Source, Utterance

# Options that tables of annotations have a use for, whatever the source itself honours.
USES = frozenset("annotations labels label_separator encoding delimiter missing".split())
_FILLED = ("text", "speaker", "split")  # of the utterance, where the source itself says nothing


class AnnotatedSource:
    """A source with tables of annotations joined to it."""

    def __init__(self, source: type[Any], location: str, options: SourceOptions) -> None:
        self.name: str = source.name
        self._type, self._location, self._options = source, location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        for join in self._joins:
            yield from join.findings()
        for row in self._source_rows():
            yield row if isinstance(row, Finding) else self._annotated(row)
        for join in self._joins:
            yield from join.leftovers()

    def vocabulary(self) -> list[str] | None:
        return self._source.vocabulary()

    @cached_property
    def _joins(self) -> list[_Join]:
        return [_Join(spec, self._location, self._options) for spec in self._options.annotations]

    @cached_property
    def _source(self) -> Source:
        """The source itself, asked only for the labels that no table has."""
        found = {folded(label) for join in self._joins for label in join.labels.names}
        rest = tuple(label for label in self._options.labels if folded(label) not in found)
        if rest and "labels" not in self._type.uses:
            columns = [column for join in self._joins for column in join.table.columns]
            problem = f"no table of annotations has a column '{rest[0]}'."
            raise ConfigError("--labels", problem, suggestion(rest[0], columns))
        # It is told of the annotations so that it does not take their tables for its own.
        source: Source = self._type(self._location, replace(self._options, labels=rest))
        return source

    def _source_rows(self) -> Iterator[Utterance | Finding]:
        """The rows of the source; where it knows a label as little as the tables do, both have been looked through."""
        try:
            yield from self._source.rows()
        except ConfigError as error:
            columns = [column for join in self._joins for column in join.table.columns]
            near = filter(None, (nearest(label, columns) for label in self._options.labels if label not in columns))
            if error.where == "--labels" and (meant := next(near, None)):
                raise ConfigError(error.where, error.problem, f"Did you mean '{meant}'?") from error
            raise

    def _annotated(self, utterance: Utterance) -> Utterance:
        for join in self._joins:
            utterance = join.applied(utterance)
        return utterance


class _Join:
    """One table, its rows by key."""

    def __init__(self, spec: str, location: str, options: SourceOptions) -> None:
        path, self.field, column = _parts(spec, location)
        self.options = options
        self.table = open_table(path, encoding=options.encoding, delimiter=options.delimiter, named=options.labels)
        self.key, self.is_by_recording = _key_column(self.table, self.field, column)
        by_folded = {folded(name): name for name in self.table.columns}
        self.labels = Labels((by_folded[folded(name)] for name in options.labels if folded(name) in by_folded), options)
        used = {self.key, *self.labels.names, *_FILLED}
        columns = {extra_name(name): name for name in self.table.columns if name not in used}
        self.further = Further(columns, options.missing)
        self.rows: dict[str, Row] = {}
        self.unused: set[str] = set()
        self.num_missing, self.missing_example = 0, ""
        self.is_ever_used = False

    def findings(self) -> Iterator[Finding]:
        """Reads the table; tells what is wrong with it."""
        yield from self.table.findings
        for row in self.table.rows():
            if isinstance(row, Finding):
                yield row
                continue
            key = text_of(row.cells.get(self.key))
            self.labels.learn(row.cells)
            self.further.learn(row.cells)
            if key in self.options.missing:
                yield _fault("bad-line", row.place, f"the column '{self.key}' is empty", "Fill it in.")
            elif self.rows.setdefault(self._as_key(key), row) is not row:
                first = self.rows[self._as_key(key)].place
                yield _fault("bad-line", row.place, f"'{key}' has a row already, at {first}", "Remove one of the two.")
        self.unused = set(self.rows)

    def applied(self, utterance: Utterance) -> Utterance:
        """The utterance with what the table says of it."""
        key = next((key for key in self._keys_of(utterance) if key in self.rows), None)
        cells: dict[str, Any] = {}
        if key is None:
            self.num_missing += 1
            self.missing_example = self.missing_example or utterance.id
        else:
            self.unused.discard(key)
            self.is_ever_used = True
            cells = present(self.rows[key].cells, self.options.missing)
        fillings: dict[str, Any] = {
            name: self._filling(cells, name) for name in _FILLED if getattr(utterance, name) is None
        }
        return replace(
            utterance,
            **fillings,
            labels=utterance.labels | self.labels.read(cells),
            extra=self.further.read(cells) | utterance.extra,
        )

    def leftovers(self) -> Iterator[Finding]:
        """What fitted nowhere."""
        where = self.table.location
        if self.rows and self.num_missing and not self.is_ever_used:
            problem = (
                f"none of its rows fits an utterance: its column '{self.key}' holds '{next(iter(self.rows))}', "
                f"while there is an utterance '{self.missing_example}'"
            )
            yield _fault("missing-annotation", where, problem, "Name both columns: --annotations FILE@OURS=THEIRS")
            return
        if self.num_missing:
            problem = f"it has no row for {self.num_missing} utterances, among them '{self.missing_example}'"
            yield _fault("missing-annotation", where, problem, "Add the rows if they are known.", is_error=False)
        if self.unused:
            problem = f"{len(self.unused)} rows speak of nothing in the source, among them '{min(self.unused)}'"
            yield _fault("unused-annotation", where, problem, "Check their spelling.", is_error=False)

    def _keys_of(self, utterance: Utterance) -> Iterator[str]:
        """What a row about this utterance may be called: for recordings the path, and any shorter end of it."""
        if self.is_by_recording:
            path = _bare_path(utterance.audio or "")
            yield from (path.split("/", count)[-1] for count in range(path.count("/") + 1))
            return
        found = getattr(utterance, self.field, None) if self.field in KNOWN else None
        found = {**utterance.extra, **utterance.labels}.get(self.field) if found is None else found
        yield _composed(text_of(found))

    def _as_key(self, key: str) -> str:
        return _bare_path(key) if self.is_by_recording else _composed(key)

    def _filling(self, cells: dict[str, Any], name: str) -> str | None:
        cell = cells.get(name)
        return None if is_missing(cell, self.options.missing) else text_of(cell)


def split_spec(spec: str) -> tuple[str, str]:
    """Path and columns of an annotation table as it is asked for; an @ may belong to the path."""
    path, at, by = spec.rpartition("@")
    return (spec, "id") if not at or "/" in by or "." in by.partition("=")[0] else (path, by)


def _parts(spec: str, location: str) -> tuple[str, str, str]:
    """Path, column of the source and column of the table in `FILE[@OURS[=THEIRS]]`."""
    folder = location if storage.is_folder(location) else storage.parent(location)
    path, by = split_spec(spec)
    field, _, column = by.partition("=")
    for place in (storage.join(folder, path), path):
        if storage.exists(place.partition("#")[0]):
            return place if storage.is_remote(place) else os.path.normpath(place), field or "id", column
    raise SourceError(path, "this table of annotations is not there.", "Give --annotations seen from the source.")


def _key_column(table: Table, field: str, told: str) -> tuple[str, bool]:
    """The column that tells which utterances a row is about, and whether it names their recordings."""
    if told:
        return find_column(table.location, table.columns, told, f"--annotations …@{field}={told}"), field == "audio"
    by_folded = {folded(name): name for name in reversed(table.columns)}
    for target in dict.fromkeys((field, "id")):
        for name in (*KNOWN.get(target, [target]), "key"):
            if folded(name) in by_folded:
                return by_folded[folded(name)], target == "audio"
        if field == "id":
            found = next((by_folded[folded(name)] for name in KNOWN["audio"] if folded(name) in by_folded), None)
            if found is not None:
                return found, True
    problem = f"no column is known to hold the {field}; the columns are {', '.join(table.columns)}."
    raise SourceError(table.location, problem, f"Name it: --annotations FILE@{field}=COLUMN")


def _bare_path(audio: str) -> str:
    """The path of a recording, or of the member of a container that it is, without extension."""
    address = Address.parse(audio)
    path = (address.member or address.location).replace("\\", "/")
    path = path[: -len(extension(path))] if is_audio(path) else path
    return _composed(path.removesuffix(f"/{WHOLE_FOLDER}"))


def _composed(key: str) -> str:
    return unicodedata.normalize("NFC", key)


def _fault(rule: str, place: str, problem: str, action: str, *, is_error: bool = True) -> Finding:
    return Finding(rule=rule, place=place, problem=f"{problem}.", action=action, is_error=is_error)
