"""The corpus folder: `manifest.parquet` (a row is an utterance) and `corpus.json` (what the rows are)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import AbsentError, ManifestError, UsageError
from sonant.base.names import suggestion
from sonant.corpus.splits.files import Splits, load_splits
from sonant.corpus.utterance import Utterance

MANIFEST, DESCRIPTION, PLANS = "manifest.parquet", "corpus.json", "splits.parquet"
REJECTED, FINDINGS = "rejected.csv", "findings.csv"
FORMAT_VERSION = 1

FIXED_COLUMNS = (
    pa.field("id", pa.string(), nullable=False),
    pa.field("audio", pa.string()),  # null: a text document
    pa.field("start", pa.float64(), nullable=False),  # seconds into the recording
    pa.field("seconds", pa.float64(), nullable=False),  # 0 for a text document
    pa.field("sample_rate", pa.int32()),
    pa.field("channel", pa.int32()),  # null: the mean of all channels
    pa.field("text", pa.string()),
    pa.field("speaker", pa.string()),
    pa.field("split", pa.string()),
)
MEASURED_COLUMNS = (
    pa.field("content", pa.string()),  # hash of the decoded samples: the same sound has the same
    pa.field("peak", pa.float32()),  # largest absolute sample, 1 = full scale
    pa.field("level", pa.float32()),  # dB below full scale, root mean square
)
KINDS = {"number": pa.float64(), "string": pa.string(), "strings": pa.list_(pa.string())}


def schema_for(labels: Mapping[str, str], extra: Mapping[str, str], *, with_tokens: bool) -> pa.Schema:
    """The columns of a manifest whose labels and further columns are of these kinds (keys of `KINDS`)."""
    columns = list(FIXED_COLUMNS)
    if labels:
        columns.append(pa.field("labels", pa.struct([pa.field(name, KINDS[kind]) for name, kind in labels.items()])))
    if with_tokens:
        columns.append(pa.field("tokens", pa.list_(pa.int32())))
    columns.extend(MEASURED_COLUMNS)
    columns.extend(pa.field(name, KINDS[kind]) for name, kind in extra.items())
    return pa.schema(columns)


def write_manifest(folder: str, schema: pa.Schema, tables: Iterable[pa.Table], fingerprint: Callable[[], str]) -> None:
    """Writes the rows, and behind them the fingerprint that is known when the last one has passed."""
    write_table(storage.join(folder, MANIFEST), schema, tables, lambda: {"fingerprint": fingerprint()})


def write_table(
    location: str, schema: pa.Schema, tables: Iterable[pa.Table], notes: Callable[[], Mapping[str, str]] = dict
) -> None:
    """Writes a Parquet file group by group, so that memory does not grow with its rows."""

    def write(file: IO[bytes]) -> None:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for table in tables:
                writer.write_table(table)
            writer.add_key_value_metadata(dict(notes()))

    storage.write_whole(location, write)


def write_description(folder: str, description: Mapping[str, Any]) -> None:
    text = json.dumps({"format": FORMAT_VERSION, **description}, ensure_ascii=False, indent=2)
    storage.write_text(storage.join(folder, DESCRIPTION), text + "\n")


def open_corpus(folder: str) -> Corpus:
    """Opens a prepared corpus, wherever it lies, and refuses one that breaks the contract."""
    where = storage.join(folder, MANIFEST)
    if not storage.exists(where):
        raise ManifestError(
            folder, f"this is not a corpus: {MANIFEST} is missing.", "Prepare it first: sonant prepare SOURCE CORPUS"
        )
    try:
        with storage.open_binary(where) as file, pq.ParquetFile(file) as opened:
            table = opened.read()
            notes = opened.metadata.metadata or {}
    except pa.ArrowInvalid as error:
        raise ManifestError(where, f"the manifest cannot be read: {error}.", "Run `sonant prepare` again.") from error
    missing = [column.name for column in FIXED_COLUMNS if column.name not in table.column_names]
    if missing:
        raise ManifestError(where, f"the columns {', '.join(missing)} are missing.", "Run `sonant prepare` again.")
    description = _read_description(folder)
    if notes.get(b"fingerprint", b"").decode() != description.get("fingerprint", ""):
        problem = f"it does not belong to {DESCRIPTION}: a preparation was stopped between the two."
        raise ManifestError(where, problem, "Run `sonant prepare` again.")
    return Corpus(folder, table, description)


def _read_description(folder: str) -> dict[str, Any]:
    where = storage.join(folder, DESCRIPTION)
    try:
        description: dict[str, Any] = json.loads(storage.read_bytes(where))
    except AbsentError as error:
        raise ManifestError(where, f"it is missing beside {MANIFEST}.", "Run `sonant prepare` again.") from error
    except ValueError as error:
        raise ManifestError(where, f"this is not JSON: {error}.", "Run `sonant prepare` again.") from error
    if description.get("format") != FORMAT_VERSION:
        found = description.get("format")
        raise ManifestError(where, f"format {found} was found, {FORMAT_VERSION} is read.", "Prepare the corpus again.")
    return description


@dataclass(frozen=True)
class Corpus:
    """Utterances ready for training. Columns come as arrays, single rows as `Utterance`."""

    folder: str
    table: pa.Table
    description: dict[str, Any] = field(repr=False)
    rows: np.ndarray | None = field(default=None, repr=False)  # where a selection stands in the manifest

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Utterance]:
        first = 0
        for batch in self.table.to_batches(max_chunksize=1024):
            for offset, row in enumerate(batch.to_pylist()):
                yield self._utterance(row, first + offset)
            first += batch.num_rows

    def __getitem__(self, index: int) -> Utterance:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.folder} has {len(self)} utterances, {index} was asked for")
        return self.take([index % len(self)])[0]

    def take(self, indices: Sequence[int] | np.ndarray) -> list[Utterance]:
        """The utterances at these places of the corpus, in this order."""
        found = self._whole.take(pa.array(indices, pa.int64())).to_pylist()
        return [self._utterance(row, int(index)) for row, index in zip(found, indices, strict=True)]

    @cached_property
    def _whole(self) -> pa.Table:
        return self.table.combine_chunks()  # a row is found 25 times faster than among the manifest's row groups

    def column(self, name: str) -> np.ndarray:
        """A column, or a label, as an array; missing numbers are NaN, missing strings None."""
        if name in self.table.column_names:
            values = self.table[name]
        elif name in self.labels:
            values = pc.struct_field(self.table["labels"], name)
        else:
            known = [*self.table.column_names, *self.labels]
            raise UsageError(self.folder, f"there is no column '{name}'.", suggestion(name, known))
        array: np.ndarray = values.to_numpy(zero_copy_only=False) if values.num_chunks else np.array([])
        return array

    @cached_property
    def seconds(self) -> np.ndarray:
        return self.column("seconds")

    @property
    def hours(self) -> float:
        return float(self.seconds.sum()) / 3600

    @property
    def labels(self) -> dict[str, str]:
        """Each label and its kind: number, string or strings."""
        return dict(self.description.get("labels", {}))

    @property
    def vocabulary(self) -> list[str] | None:
        """The symbols behind `tokens`, where the source had only label ids."""
        return self.description.get("vocabulary")

    @property
    def splits(self) -> dict[str, int]:
        """Each split and its number of utterances; utterances outside every split are not counted."""
        counts = pc.value_counts(self.table["split"].combine_chunks()).to_pylist()
        return {entry["values"]: entry["counts"] for entry in counts if entry["values"] is not None}

    @property
    def plans(self) -> list[str]:
        """The ways in which this corpus was split, one for each seed and fold; rows hold the splits of the first."""
        return list(self.description.get("splits", {}).get("plans", []))

    def with_plan(self, plan: str) -> Corpus:
        """The same utterances with the splits of another plan."""
        if plan not in self.plans:
            raise UsageError(self.folder, f"there is no plan '{plan}'.", suggestion(plan, self.plans))
        if plan == self.plans[0]:
            return self
        return self.with_splits(load_splits(storage.join(self.folder, PLANS), plan))

    def with_splits(self, splits: Splits, plan: str = "") -> Corpus:
        """The same utterances with saved splits, by id; those that the file does not name are in none."""
        places = pc.index_in(self.table["id"], value_set=pa.array(splits.ids, pa.string()))
        column = pa.array(splits.plan(plan), pa.string()).take(places.combine_chunks())
        index = self.table.column_names.index("split")
        return replace(self, table=self.table.set_column(index, self.table.schema.field(index), column))

    def split(self, name: str, plan: str = "") -> Corpus:
        """The utterances of one split; `plan` is one of `plans`, the first if none is named."""
        if plan:
            return self.with_plan(plan).split(name)
        if name not in self.splits:
            raise UsageError(self.folder, f"there is no split '{name}'.", suggestion(name, self.splits))
        return self.where(pc.equal(self.table["split"], name))

    def where(self, keep: Any) -> Corpus:
        """The utterances for which an Arrow or numpy array of booleans is true."""
        mask = keep if isinstance(keep, (pa.Array, pa.ChunkedArray)) else pa.array(keep)
        kept = np.flatnonzero(pc.fill_null(mask, False).to_numpy(zero_copy_only=False))
        return replace(self, table=self.table.filter(mask), rows=kept if self.rows is None else self.rows[kept])

    def _utterance(self, row: dict[str, Any], index: int) -> Utterance:
        known = {name: row.pop(name, None) for name in Utterance.__dataclass_fields__ if name not in ("place", "extra")}
        audio = known.pop("audio")
        return Utterance(
            **known | {"labels": known["labels"] or {}, "tokens": known["tokens"] and tuple(known["tokens"])},
            audio=audio and str(Address.parse(audio).below(self.folder)),
            place=f"{storage.join(self.folder, MANIFEST)}:{(index if self.rows is None else self.rows[index]) + 1}",
            extra=row,
        )
