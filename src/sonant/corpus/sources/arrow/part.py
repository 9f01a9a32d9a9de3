"""One part of a dataset: rows that are numbered together, in a Parquet file, an Arrow file or a saved dataset.

Columns are read apart from each other, a few rows at a time: recordings are passed over and never held.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import SourceError

_BATCH_ROWS = 256
_NOTES = b"huggingface"  # where `datasets` keeps the features in the schema of a file


@dataclass(frozen=True)
class Part:
    """Rows counted from 0 across its files."""

    location: str  # what addresses name: a file, or the local folder of a saved dataset
    files: tuple[str, ...]
    split: str | None = None

    def place(self, row: int) -> str:
        """Where a user finds a row; counted as `datasets` counts."""
        return f"{self.location}#{row}"

    def address(self, row: int, column: str) -> str:
        return str(Address(self.location, f"{row}/{column}"))

    def schema(self) -> pa.Schema:
        """The columns; a saved dataset without any file has none."""
        for file in self.files:
            with _opened(file) as reader:
                return reader.schema
        return pa.schema([])

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Some rows of these columns at a time, with the number of the first."""
        first = 0
        for file in self.files:
            with _opened(file) as reader:
                for batch in reader.batches(columns):
                    yield first, batch
                    first += batch.num_rows


def features_of(schema: pa.Schema) -> dict[str, Any]:
    """What `datasets` notes about the columns: `{"audio": {"_type": "Audio", "sampling_rate": 16000}}`."""
    try:
        features = json.loads((schema.metadata or {}).get(_NOTES, b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}


class _Parquet:
    def __init__(self, file: Any) -> None:
        self._file = pq.ParquetFile(file, pre_buffer=False)
        self.schema: pa.Schema = self._file.schema_arrow

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self._file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns), use_threads=False):
            yield batch.select(list(columns))


class _Arrow:
    """Either form of Arrow files; `datasets` writes the streamed one."""

    def __init__(self, file: Any) -> None:
        is_streamed = file.read(6) != b"ARROW1"
        file.seek(0)
        self._reader = pa.ipc.open_stream(file) if is_streamed else pa.ipc.open_file(file)
        self._batches = iter(self._reader) if is_streamed else map(self._reader.get_batch, self._numbers())
        self.schema: pa.Schema = self._reader.schema

    def _numbers(self) -> range:
        return range(self._reader.num_record_batches)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            light = batch.select(list(columns))
            for first in range(0, light.num_rows, _BATCH_ROWS):
                yield light.slice(first, _BATCH_ROWS)


@contextmanager
def _opened(file: str) -> Iterator[_Parquet | _Arrow]:
    """A file for reading; whatever is wrong with it, also later, is said of it."""
    with storage.open_binary(file) as content:
        try:
            is_parquet = content.read(4) == b"PAR1"
            content.seek(0)
            if is_parquet:
                yield _Parquet(content)
            else:
                with pa.PythonFile(content, "r") if storage.is_remote(file) else pa.memory_map(file) as stream:
                    yield _Arrow(stream)
        except (pa.ArrowException, OSError) as error:
            problem = f"this file of a dataset cannot be read: {str(error).rstrip('.')}."
            raise SourceError(file, problem, "Copy it again, or save the dataset again.") from error
