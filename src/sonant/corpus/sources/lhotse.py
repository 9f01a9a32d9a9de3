"""Lhotse's manifests: cuts, or recordings with their supervisions, as JSON lines, gzipped or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.corpus.sources.lhotse_rows import rows_of_cut, rows_of_recordings, rows_of_supervisions
from sonant.corpus.sources.locate import basename, entries
from sonant.corpus.sources.manifests import first_object, manifests_in, open_manifest, read_manifests, with_splits
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.columns import Meaning, extra_name, find_column
from sonant.corpus.sources.tables.tabular import Row, Table
from sonant.corpus.utterance import Finding, Utterance

_FIXED = ("id", "audio", "start", "seconds", "channel", "text", "speaker")
_CUTS, _SUPERVISIONS, _RECORDINGS = "cuts", "supervisions", "recordings"


class LhotseSource:
    """One manifest, or a folder of them: cuts are read where there are any."""

    name: ClassVar[str] = "lhotse"
    uses: ClassVar[frozenset[str]] = frozenset("table audio labels label_separator encoding missing split".split())

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        return any(_kind_of(first_object(manifest)) for manifest in manifests_in(location, names))

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        names = entries(self.location)
        folder = self.location if names else storage.parent(self.location)
        opened = []
        for location, split in self._manifests(folder, names).items():
            table = self._opened(location, folder)
            opened.append((table, self._meaning(table), split))
        yield from read_manifests(opened, folder, self.options)

    def vocabulary(self) -> list[str] | None:
        return None

    def _manifests(self, folder: str, names: Sequence[str]) -> dict[str, str]:
        if self.options.table or not names:
            named = storage.join(folder, self.options.table) if self.options.table else self.location
            return with_splits(folder, [named])
        found = [(_kind_of(first_object(one)), one) for one in manifests_in(folder, names)]
        for wanted in (_CUTS, _SUPERVISIONS, _RECORDINGS):
            if manifests := [one for kind, one in found if kind == wanted]:
                return with_splits(folder, manifests)
        problem = "no file of JSON in this folder holds cuts, supervisions or recordings."
        raise SourceError(folder, problem, "Name the manifest, or its folder.")

    def _opened(self, location: str, folder: str) -> Table:
        kind = _kind_of(first_object(location))
        if kind == _SUPERVISIONS:
            recordings = self._objects(_recordings_of(location, folder))
            return rows_of_supervisions(self._objects(location), recordings)
        if kind == _RECORDINGS:
            return rows_of_recordings(self._objects(location))
        if kind == _CUTS:
            return open_manifest(location, rows_of_cut, self.options)
        problem = "its first object is no cut, supervision or recording of Lhotse."
        raise SourceError(location, problem, "Name a manifest that Lhotse wrote as JSON lines.")

    def _objects(self, location: str) -> Table:
        return open_manifest(location, _as_it_is, self.options)

    def _meaning(self, table: Table) -> Meaning:
        labels = tuple(find_column(table.location, table.columns, name, "--labels") for name in self.options.labels)
        further = [name for name in table.columns if name not in (*_FIXED, *labels)]
        present = {name: name for name in _FIXED if name in table.columns}
        return Meaning({"audio": "audio", **present}, labels, {extra_name(name): name for name in further})


def _as_it_is(row: Row) -> Iterator[Row]:
    yield row


def _kind_of(value: Mapping[str, Any]) -> str:
    """What a manifest with such a first object holds; empty where it is not Lhotse's."""
    if "tracks" in value or str(value.get("type", "")).endswith("Cut") or {"recording", "start"} <= value.keys():
        return _CUTS
    if {"recording_id", "start", "duration"} <= value.keys():
        return _SUPERVISIONS
    return _RECORDINGS if {"sources", "sampling_rate"} <= value.keys() else ""


def _recordings_of(supervisions: str, folder: str) -> str:
    """The manifest of recordings that belongs to one of supervisions: called alike, or the only one there."""
    name = basename(supervisions)
    alike = storage.join(folder, name.replace("supervisions", "recordings").replace("segments", "recordings"))
    if alike != supervisions and storage.exists(alike):
        return alike
    found = [one for one in manifests_in(folder, entries(folder)) if _kind_of(first_object(one)) == _RECORDINGS]
    if len(found) == 1:
        return found[0]
    problem = f"it tells what is said in recordings, but {len(found)} manifests of recordings lie beside it."
    raise SourceError(supervisions, problem, f"Put its recordings beside it, as {basename(alike)}.")
