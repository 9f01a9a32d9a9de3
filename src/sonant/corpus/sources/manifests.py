"""Manifests of other toolkits: files of JSON, one object a line, whose keys are known.

Nothing in their names tells them apart, so their first object is looked at. Paths in them start from the manifest,
from a folder above it or from here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.corpus.sources.lines import decode_text, open_bytes
from sonant.corpus.sources.locate import audio_folder, basename, folders_above, is_litter
from sonant.corpus.sources.naming import split_in
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.table import read_opened
from sonant.corpus.sources.tables.columns import Meaning
from sonant.corpus.sources.tables.objects import rows_of
from sonant.corpus.sources.tables.tabular import Row, Table
from sonant.corpus.utterance import Finding, Utterance

_EXTENSIONS = (".json", ".jsonl", ".ndjson")
_HEAD_BYTES = 1 << 20
_MOST_LOOKED_AT = 20  # files of a folder

Rewrite = Callable[[Row], Iterator[Row | Finding]]


def first_object(location: str) -> dict[str, Any]:
    """The first object of a file of JSON, in a list or on a line; an empty one where there is none."""
    with open_bytes(location) as file:
        head = file.read(_HEAD_BYTES).decode("utf-8-sig", "replace").lstrip()
    head = head.removeprefix("[").lstrip()
    try:
        value, _ = json.JSONDecoder().raw_decode(head)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def manifests_in(location: str, names: Sequence[str]) -> list[str]:
    """The files that may be manifests: those of a folder, or the location itself."""
    if not names:
        return [location] if _may_be_manifest(location.partition("?")[0]) else []
    return [storage.join(location, name) for name in names if _may_be_manifest(name)][:_MOST_LOOKED_AT]


def _may_be_manifest(name: str) -> bool:
    return basename(name).casefold().removesuffix(".gz").endswith(_EXTENSIONS) and not is_litter(name)


def with_splits(folder: str, manifests: Sequence[str]) -> dict[str, str]:
    """Each manifest with the split that its name tells; a mixture of names may mean the same utterances twice."""
    splits = {location: split_in(basename(location)) or "" for location in manifests}
    if len(set(map(bool, splits.values()))) > 1:
        names = ", ".join(basename(location) for location in manifests[:8])
        problem = f"of its manifests ({names}) only some are named after a split, so that some may hold all the others."
        raise SourceError(folder, problem, "Name the one to read with --table.")
    return splits


def open_manifest(location: str, rewrite: Rewrite, options: SourceOptions) -> Table:
    """The manifest as a table; each of its objects becomes the rows that `rewrite` makes of it."""
    text = decode_text(location, options.encoding)
    objects = rows_of(text)

    def rows() -> Iterator[Row | Finding]:
        for row in objects():
            if isinstance(row, Row):
                yield from rewrite(row)
            else:
                yield row

    columns = dict.fromkeys(name for row in rows() if isinstance(row, Row) for name in row.cells)
    return Table(location, tuple(columns), rows, True, text.findings)


def read_manifests(
    opened: Sequence[tuple[Table, Meaning, str]], folder: str, options: SourceOptions
) -> Iterator[Utterance | Finding]:
    """The utterances of manifests that lie in a folder, each with the split of its rows."""
    yield from read_opened(opened, audio_folder(folder, options.audio), options, folders_above(folder))


def with_columns(table: Table, known: Mapping[str, str], options: SourceOptions) -> SourceOptions:
    """The options, as if the user had told those of the known columns that this table has."""
    present = {target: name for target, name in known.items() if name in table.columns}
    return replace(options, columns=present | options.columns)


def lacking(row: Row, required: Collection[str]) -> Finding | None:
    """What is wrong with a row that has no value for a key."""
    for name in required:
        if row.cells.get(name) in (None, ""):
            problem = f"the object has no '{name}'."
            action = f"Write an object with {' and '.join(required)} on each line."
            return Finding(rule="bad-line", place=row.place, problem=problem, action=action)
    return None
