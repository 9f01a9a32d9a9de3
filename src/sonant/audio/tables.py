"""Recordings in rows of Parquet files and of datasets that Hugging Face `datasets` saved to disk.

A cell holds a whole file (`bytes`, or a struct with `bytes` and `path`), the name of a file beside the table, or the
samples themselves as numbers. Of a Parquet file a row group is read at a time and the last ones are kept: rows that
are read in order cost one reading. Saved datasets are mapped into memory and cost nothing.
"""

from __future__ import annotations

import bisect
import json
import os
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from sonant.audio.address import Address
from sonant.audio.decoders.arrays import ArrayDecoder
from sonant.audio.streams import Bytes, Memory, Stream, open_bytes
from sonant.base import storage
from sonant.base.errors import AudioError
from sonant.base.names import suggestion

_TABLES_KEPT = 16
_COLUMNS_KEPT = 1024  # of Arrow files, mapped and checked
_GROUPS_KEPT = 2  # of Parquet files: some 100 MB each
_STATE = "state.json"


def open_row(address: Address, where: str, sample_rate: int | None) -> Bytes | ArrayDecoder:
    """The recording in one cell: `row/column`."""
    text, _, column = (address.member or "").partition("/")
    if not (text.isdecimal() and column):
        raise AudioError(where, "a place in a table is written row/column.", "Write, for example: part.parquet#0/audio")
    is_folder = not storage.is_remote(address.location) and os.path.isdir(address.location)
    cell = _saved_cell if is_folder else _file_cell
    try:
        return _recording_in(cell(address.location, int(text), column, where), address, where, sample_rate)
    except UnicodeDecodeError as error:
        raise AudioError(where, "a name in this table is not UTF-8: the table is damaged.", "Copy it again.") from error


def _recording_in(cell: Any, address: Address, where: str, sample_rate: int | None) -> Bytes | ArrayDecoder:
    """What a cell holds: bytes, a file's name, or numbers."""
    import pyarrow as pa

    if not cell.is_valid:
        raise AudioError(where, "this row holds no recording.", "Leave the row out.")
    if isinstance(cell, pa.StructScalar):
        fields = {name for name in cell if cell[name].is_valid}
        for name in ("bytes", "array", "path"):
            if name in fields:
                rate = cell["sampling_rate"].as_py() if "sampling_rate" in fields else sample_rate
                return _recording_in(cell[name], address, where, rate)
        raise AudioError(where, "this row has neither bytes nor a path.", "Leave the row out.")
    if pa.types.is_string(cell.type) or pa.types.is_large_string(cell.type):
        return open_bytes(_beside(cell.as_py(), address.location))
    if hasattr(cell, "as_buffer"):
        return Memory(memoryview(cell.as_buffer()))
    if hasattr(cell, "values"):
        return _numbers(cell.values, where, sample_rate)
    raise AudioError(where, f"the column holds {cell.type}, not recordings.", "Name the column of the recordings.")


def _beside(path: str, table: str) -> str:
    """A file that a table names: where it says, or else beside the table."""
    found = storage.join(storage.parent(table), path)
    return found if storage.exists(found) else storage.join(storage.parent(table), os.path.basename(path))


def _numbers(values: Any, where: str, sample_rate: int | None) -> ArrayDecoder:
    """A list of samples, or a list of channels with a list of samples each."""
    if not sample_rate:
        raise AudioError(where, "these are bare samples without a sample rate.", "Give it with --sample-rate.")
    if hasattr(values, "values"):
        channels = [np.asarray(values[index].values) for index in range(len(values))]
        if len({len(channel) for channel in channels}) > 1:
            raise AudioError(where, "the channels of this row differ in length.", "Leave the row out.")
        samples = np.stack(channels, axis=1) if channels else np.empty((0, 1), np.float32)
    else:
        samples = np.asarray(values)[:, None]
    if samples.dtype.kind not in "if":
        raise AudioError(where, f"the column holds {samples.dtype}, not samples.", "Name the column of the recordings.")
    if samples.dtype == np.int64:
        problem = "the column holds whole numbers of 64 bits, of which nobody knows what is full scale."
        raise AudioError(where, problem, "Store them as int16, int32 or float32.")
    if not len(samples):
        raise AudioError(where, "it holds no samples.", "Leave the row out.")
    return ArrayDecoder(samples, sample_rate)


def _place_in(starts: list[int], row: int, where: str) -> tuple[int, int]:
    """Which part holds a row, and which row of the part it is; `starts` ends in the number of rows."""
    if row >= starts[-1]:
        raise AudioError(where, f"row {row} was asked for, the table has {starts[-1]}.", "Count rows from 0.")
    part = bisect.bisect_right(starts, row) - 1
    return part, row - starts[part]


def _check_column(column: str, known: list[str], where: str) -> None:
    if column not in known:
        raise AudioError(where, f"the table has no column '{column}'.", suggestion(column, known))


def _file_cell(location: str, row: int, column: str, where: str) -> Any:
    content = open_bytes(location)
    mark, is_parquet = content.mark, content.read_at(0, 4) == b"PAR1"
    content.close()
    if not is_parquet:
        table = _arrow_file(location, mark)
        _check_column(column, table.column_names, where)
        _place_in([0, table.num_rows], row, where)
        return _arrow_column(location, mark, column)[row]
    file, starts = _parquet(location, mark)
    _check_column(column, file.schema_arrow.names, where)
    group, row = _place_in(starts, row, where)
    found = _parquet_column(location, mark, group, column)
    if row >= len(found):
        raise AudioError(location, "this Parquet file is damaged: a column ends before the others.", "Copy it again.")
    return found[row]


@lru_cache(maxsize=_TABLES_KEPT)
def _parquet(location: str, mark: object) -> tuple[Any, list[int]]:
    """An open Parquet file and the first row of each group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.PythonFile(Stream(open_bytes(location)), mode="r"), pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise AudioError(location, f"this Parquet file cannot be read: {_said(error)}.", "Copy it again.") from error
    counts = (file.metadata.row_group(index).num_rows for index in range(file.num_row_groups))
    return file, [0, *accumulate(counts)]


@lru_cache(maxsize=_GROUPS_KEPT)
def _parquet_column(location: str, mark: object, group: int, column: str) -> Any:
    import pyarrow as pa

    try:  # without threads: they do not survive a fork
        return _parquet(location, mark)[0].read_row_group(group, columns=[column], use_threads=False)[column]
    except (pa.ArrowException, OSError) as error:
        raise AudioError(location, f"this Parquet file is damaged: {_said(error)}.", "Copy it again.") from error


def _saved_cell(folder: str, row: int, column: str, where: str) -> Any:
    files = _files_of(folder, _mark(os.path.join(folder, _STATE)))
    marks = tuple(map(_mark, files))
    tables, starts = _saved(files, marks)
    _check_column(column, tables[0].column_names if tables else [], where)
    part, row = _place_in(starts, row, where)
    return _arrow_column(files[part], marks[part], column)[row]


def _mark(path: str) -> tuple[int, ...]:
    with storage.storage_errors(path):
        found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=_TABLES_KEPT)
def _files_of(folder: str, mark: object) -> tuple[str, ...]:
    """The Arrow files of a saved dataset, in order."""
    try:
        state = json.loads(storage.read_bytes(os.path.join(folder, _STATE)))
        return tuple(os.path.join(folder, entry["filename"]) for entry in state["_data_files"])
    except (ValueError, KeyError, TypeError) as error:
        raise AudioError(folder, f"its {_STATE} cannot be understood: {error}.", "Save the dataset again.") from error


@lru_cache(maxsize=_TABLES_KEPT)
def _saved(files: tuple[str, ...], marks: tuple[object, ...]) -> tuple[list[Any], list[int]]:
    """The tables of a saved dataset and the first row of each."""
    tables = [_arrow_file(file, mark) for file, mark in zip(files, marks, strict=True)]
    return tables, [0, *accumulate(table.num_rows for table in tables)]


@lru_cache(maxsize=_TABLES_KEPT)
def _arrow_file(location: str, mark: object) -> Any:
    """An Arrow file, streamed or not, mapped into memory where it is local."""
    import pyarrow as pa

    is_remote = storage.is_remote(location)
    try:
        source = pa.PythonFile(Stream(open_bytes(location)), "r") if is_remote else pa.memory_map(location)
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)  # `read_at` would move the position of a remote one
        if is_file:
            return pa.ipc.open_file(source).read_all()
        return pa.ipc.open_stream(source).read_all()
    except (pa.ArrowException, OSError) as error:
        raise AudioError(
            location, f"this Arrow file cannot be read: {_said(error)}.", "Save the dataset again."
        ) from error


@lru_cache(maxsize=_COLUMNS_KEPT)
def _arrow_column(location: str, mark: object, column: str) -> Any:
    """A column of an Arrow file whose offsets have been checked: one that points nowhere would end the process."""
    import pyarrow as pa

    found = _arrow_file(location, mark)[column]
    try:
        found.validate(full=True)
    except pa.ArrowException as error:
        raise AudioError(location, f"this Arrow file is damaged: {_said(error)}.", "Save the dataset again.") from error
    return found


def _said(error: Exception) -> str:
    """What a library says of a file, in one line."""
    return " ".join(str(error).split()).rstrip(". ")
