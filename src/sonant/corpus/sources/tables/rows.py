"""Reads a table of any kind, whatever its extension says: delimited text, JSON, Parquet or a spreadsheet."""

from __future__ import annotations

from collections.abc import Collection

from sonant.base.errors import SourceError
from sonant.corpus.sources.lines import decode_text, open_bytes
from sonant.corpus.sources.locate import basename
from sonant.corpus.sources.tables.delimited import open_delimited
from sonant.corpus.sources.tables.objects import open_objects
from sonant.corpus.sources.tables.sheets import open_parquet, open_sheet
from sonant.corpus.sources.tables.tabular import Table

EXTENSIONS = (".csv", ".tsv", ".tab", ".psv", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xlsm")
_OTHERS = (".json", ".txt")  # may be tables, but seldom are: read only when somebody says so
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"


def is_table(location: str) -> bool:
    """True for names that only tables have."""
    name = basename(location.partition("?")[0]).casefold().removesuffix(".gz")
    return name.endswith(EXTENSIONS)


def may_be_table(location: str) -> bool:
    """True also for names that tables have among others; a sheet may be named behind a #."""
    name = basename(location.partition("?")[0].partition("#")[0]).casefold().removesuffix(".gz")
    return name.endswith(EXTENSIONS + _OTHERS)


def open_table(location: str, *, encoding: str = "", delimiter: str = "", named: Collection[str] = ()) -> Table:
    """The table in a file; `named` are the columns that the user spoke of, which tells a header from a row."""
    location, _, sheet = location.partition("#") if ".xlsx#" in location.casefold() else (location, "", "")
    with open_bytes(location) as file:
        head = file.read(4096)
    if head.startswith(b"PAR1"):
        return open_parquet(location)
    if head.startswith(b"PK\x03\x04"):
        return open_sheet(location, sheet, named)
    if head.startswith(_OLD_OFFICE):
        raise SourceError(location, "spreadsheets of before 2007 are not read.", "Save it as .xlsx or .csv.")
    text = decode_text(location, encoding)
    first = next((line.strip() for line in text if line.strip()), "")
    if first.startswith(("{", "[")) and not delimiter:
        return open_objects(text)
    return open_delimited(text, delimiter, named)
