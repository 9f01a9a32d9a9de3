"""Writes the corpus folder from the draft: the lists of findings first, the manifest and its description last."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, Any, TypeVar

import pyarrow as pa

from sonant.base import storage
from sonant.corpus import manifest
from sonant.corpus.preparation.draft import Draft, Row, Sound, from_json
from sonant.corpus.preparation.whole import kinds_of
from sonant.corpus.splits import Splitter
from sonant.corpus.utterance import Finding

T = TypeVar("T")
_GROUP_ROWS = 8192
_GROUP_CHARACTERS = 1 << 24  # of text: documents are longer than sentences
_FINDING = ("id", "place", "rule", "problem", "action")


def write_findings(folder: str, draft: Draft) -> None:
    """Everything that was found, errors and warnings."""
    here = _FromHere(folder)
    rows = (
        (*_cells(found, sound, here), "error" if found.is_error else "warning") for found, sound in draft.findings()
    )
    _write_csv(storage.join(folder, manifest.FINDINGS), (*_FINDING, *Sound._fields, "severity"), rows)


def write_rejected(folder: str, draft: Draft) -> None:
    """Each utterance, or line, that was left out, and why."""
    here = _FromHere(folder)
    rows = (_cells(found, sound, here) for found, sound in draft.rejected())
    _write_csv(storage.join(folder, manifest.REJECTED), (*_FINDING, *Sound._fields), rows)


def _cells(found: Finding, sound: Sound, here: _FromHere) -> list[Any]:
    times = (round(sound.start, 4), round(sound.seconds, 4)) if sound.audio else ("", "")
    return [*(getattr(found, name) for name in _FINDING), here(sound.audio), *times]


def write_plans(folder: str, draft: Draft, splitter: Splitter) -> None:
    """The splits of every plan."""
    schema = pa.schema([pa.field(name, pa.string()) for name in ("id", *splitter.names)])
    rows = ((utterance.id, *splitter.splits_of(utterance)) for utterance in draft)
    tables = (pa.table(list(zip(*group, strict=True)), schema=schema) for group in _groups(rows))
    manifest.write_table(storage.join(folder, manifest.PLANS), schema, tables)


def write_corpus(folder: str, draft: Draft, description: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest, then its description; gives what the rows add to that."""
    columns = _Columns(draft, folder)
    summary = _Summary()
    tables = (columns.table(rows) for rows in _row_groups(summary.count(draft.kept())))
    manifest.write_manifest(folder, columns.schema, tables, lambda: summary.fingerprint)
    found = summary.description | {"labels": columns.labels, "columns": columns.extra}
    manifest.write_description(folder, {**found, **description})
    return found


class _Columns:
    """Turns rows of the draft into tables of the manifest."""

    def __init__(self, draft: Draft, folder: str) -> None:
        self._here = _FromHere(folder)
        (num_tokens,) = next(draft.select("SELECT count(tokens) FROM draft.rows WHERE NOT rejected"))
        self.labels = {name: _kind(counts) for name, counts in kinds_of(draft, "labels").items()}
        extra = {name: _kind(counts) for name, counts in kinds_of(draft, "extra").items()}
        taken = set(manifest.schema_for(self.labels, {}, with_tokens=True).names)
        self._names = {name: f"source_{name}" if name in taken else name for name in extra}
        self.extra = {self._names[name]: kind for name, kind in extra.items()}
        self.schema = manifest.schema_for(self.labels, self.extra, with_tokens=num_tokens > 0)

    def table(self, rows: Sequence[Row]) -> pa.Table:
        columns: dict[str, Any] = dict(zip(Row._fields, zip(*rows, strict=True), strict=True))
        columns["audio"] = [self._here(audio) for audio in columns["audio"]]
        columns["tokens"] = [tokens and json.loads(tokens) for tokens in columns["tokens"]]
        labels = [from_json(text) for text in columns["labels"]]
        columns["labels"] = [
            {name: _as_kind(values.get(name), kind) for name, kind in self.labels.items()} for values in labels
        ]
        extra = [from_json(text) for text in columns.pop("extra")]
        for name, column in self._names.items():
            columns[column] = [_as_kind(values.get(name), self.extra[column]) for values in extra]
        arrays = [pa.array(columns[field.name], field.type) for field in self.schema]
        return pa.Table.from_arrays(arrays, schema=self.schema)


class _Summary:
    """What is added up while rows pass by. The fingerprint depends neither on their order nor on where audio lies."""

    def __init__(self) -> None:
        self.num_rows = 0
        self.seconds = 0.0
        self._hash = 0

    def count(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self.num_rows += 1
            self.seconds += row.seconds
            said = (row.id, row.content, row.sample_rate, row.text, row.speaker, row.split, row.labels, row.tokens)
            digest = hashlib.blake2b(json.dumps(said).encode(), digest_size=16).digest()
            self._hash += int.from_bytes(digest, "little")
            yield row

    @property
    def fingerprint(self) -> str:
        return f"{self._hash % 2**128:032x}"

    @property
    def description(self) -> dict[str, Any]:
        hours = round(self.seconds / 3600, 4)
        return {"fingerprint": self.fingerprint, "utterances": self.num_rows, "hours": hours}


def _kind(counts: Counter[str]) -> str:
    return next(iter(counts)) if len(counts) == 1 else "string"


def _as_kind(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "number":
        return float(value)
    return value if kind == "strings" or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class _FromHere:
    """Addresses as seen from the corpus folder, so that both may be moved together; what lies elsewhere stays whole."""

    def __init__(self, folder: str) -> None:
        self._remote = folder.rstrip("/") + "/" if storage.is_remote(folder) else ""
        self._base = os.path.realpath(folder)  # the system follows `..` from where the folder really is
        self._known: dict[str, str] = {}

    def __call__(self, audio: str | None) -> str | None:
        if not audio or storage.is_remote(audio) or self._remote:
            return audio.removeprefix(self._remote) if audio and self._remote else audio
        location, found, member = audio.partition("#")
        head, name = os.path.split(os.path.abspath(location))
        if head not in self._known:
            self._known[head] = os.path.relpath(head, self._base)
        return os.path.normpath(os.path.join(self._known[head], name)) + found + member


def _row_groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    num_characters = 0
    for row in rows:
        group.append(row)
        num_characters += len(row.text or "")
        if len(group) >= _GROUP_ROWS or num_characters >= _GROUP_CHARACTERS:
            yield group
            group, num_characters = [], 0
    if group:
        yield group


def _groups(rows: Iterable[T]) -> Iterator[list[T]]:
    rows = iter(rows)
    while group := list(islice(rows, _GROUP_ROWS)):
        yield group


def _write_csv(location: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    def write(file: IO[bytes]) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
        text.flush()
        text.detach()

    storage.write_whole(location, write)
