"""Tables that are no text: spreadsheets (.xlsx) and Parquet files, read row group by row group."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sonant.base import storage
from sonant.base.errors import DependencyError, SourceError
from sonant.base.names import suggestion
from sonant.corpus.sources.tables.cells import text_of
from sonant.corpus.sources.tables.tabular import Row, Table, name_columns, wrong_width
from sonant.corpus.utterance import Finding


def open_parquet(location: str) -> Table:
    """The table in a Parquet file; columns of bytes cannot be kept and are left out."""
    with storage.open_binary(location) as file:
        try:
            schema = pq.read_schema(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise SourceError(location, f"this Parquet file cannot be read: {error}.", "Write it again.") from error
    holds_audio = [field.name for field in schema if pa.types.is_struct(field.type) and _has_bytes(field.type)]
    if holds_audio:
        problem = f"the column '{holds_audio[0]}' holds recordings themselves, not their names."
        raise SourceError(location, problem, "Read it with --from huggingface.")
    columns = [field.name for field in schema if not pa.types.is_binary(field.type)]

    def rows() -> Iterator[Row | Finding]:
        number = 0
        with storage.open_binary(location) as file:
            for batch in pq.ParquetFile(file).iter_batches(batch_size=1024, columns=columns):
                for number, cells in enumerate(batch.to_pylist(), start=number + 1):  # noqa: B020
                    yield Row(f"{location}:{number}", cells)

    return Table(location, tuple(columns), rows)


def _has_bytes(kind: pa.StructType) -> bool:
    return any(pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type) for field in kind)


def open_sheet(location: str, sheet: str, named: Collection[str]) -> Table:
    """The table in a spreadsheet; the first sheet unless one is named."""
    header = next(_sheet_rows(location, sheet), None)
    if header is None:
        raise SourceError(location, "the sheet is empty.", "Name the right one: --table BOOK.xlsx#SHEET")
    first, cells = header
    columns, has_header = name_columns(f"{location}:{first}", cells, named)

    def rows() -> Iterator[Row | Finding]:
        for number, cells in _sheet_rows(location, sheet):
            if number == first and has_header:
                continue
            if len(cells) > len(columns):
                yield wrong_width(f"{location}:{number}", len(cells), columns, "nothing")
            else:
                yield Row(f"{location}:{number}", dict(zip(columns, cells, strict=False)))

    return Table(location, columns, rows, has_header)


def _sheet_rows(location: str, sheet: str) -> Iterator[tuple[int, list[Any]]]:
    """Number and cells of each row that is not blank, without the blank cells at its end."""
    try:
        import openpyxl
    except ImportError as error:
        raise DependencyError.for_extra("openpyxl", "formats", "reading spreadsheets") from error
    with storage.open_binary(location) as file:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except Exception as error:  # whatever a damaged archive makes its reader raise
            raise SourceError(
                location, f"this spreadsheet cannot be read: {error}.", "Save it again as .xlsx."
            ) from error
        if sheet and sheet not in book.sheetnames:
            raise SourceError(location, f"there is no sheet '{sheet}'.", suggestion(sheet, book.sheetnames))
        page = book[sheet] if sheet else book.worksheets[0]
        page.reset_dimensions()  # other programs write wrong ones
        for number, cells in enumerate(page.iter_rows(), start=1):
            values = _without_blank_end([_value(cell) for cell in cells])
            if values:
                yield number, values
        book.close()


def _value(cell: Any) -> Any:
    """What the sheet shows: a 7 in the number format 000 is "007"."""
    value = cell.value
    if isinstance(value, int | float) and re.fullmatch("0{2,}", getattr(cell, "number_format", None) or ""):
        return text_of(value).zfill(len(cell.number_format))
    return value


def _without_blank_end(values: Sequence[Any]) -> list[Any]:
    last = max((number for number, value in enumerate(values, 1) if text_of(value)), default=0)
    return list(values[:last])
