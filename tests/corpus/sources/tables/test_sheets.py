from __future__ import annotations

import datetime

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sonant.base.errors import SourceError
from sonant.corpus.sources.tables.cells import text_of
from sonant.corpus.sources.tables.rows import open_table
from sonant.corpus.sources.tables.tabular import Row


@pytest.fixture
def book(tmp_path):
    """A spreadsheet with these rows, under this name."""

    def save(rows, name="t.xlsx", sheets=()):
        made = openpyxl.Workbook()
        for row in rows:
            made.active.append(row)
        for title, content in sheets:
            page = made.create_sheet(title)
            for row in content:
                page.append(row)
        made["Sheet"]["A2"].number_format = "000" if rows and len(rows) > 1 else "General"
        path = tmp_path / name
        made.save(path)
        return str(path)

    return save


def texts(row):
    return [text_of(cell) for cell in row.cells.values()]


def test_a_spreadsheet_is_read_as_it_is_shown(book):
    rows = [["id", "text", "age", "when"], [7, "one", 7.0, datetime.date(2024, 5, 1)], ["007", None, 7.5, True]]
    table = open_table(book(rows))
    assert table.columns == ("id", "text", "age", "when")
    first, second = table.rows()
    assert texts(first) == ["007", "one", "7", "2024-05-01T00:00:00"]
    assert texts(second) == ["007", "", "7.5", "true"]
    assert second.place == f"{table.location}:3"


def test_a_spreadsheet_keeps_its_row_numbers_over_blank_rows(book):
    table = open_table(book([["id", "text"], ["a", "x"], [], [None, " "], ["b", "y", None]]))
    assert [row.place.rpartition(":")[2] for row in table.rows()] == ["2", "5"]


def test_a_cell_beyond_the_header_is_told_with_its_row(book):
    found = list(open_table(book([["id", "text"], ["a", "x"], ["b", "y", "stray"]])).rows())
    assert [(one.rule, one.place.rpartition(":")[2]) for one in found if not isinstance(one, Row)] == [
        ("bad-line", "3")
    ]


def test_a_sheet_can_be_named(book):
    path = book([["id"], ["a"]], sheets=[("Second", [["id"], ["b"]])])
    assert [row.cells["id"] for row in open_table(path + "#Second").rows()] == ["b"]
    with pytest.raises(SourceError, match="Did you mean 'Second'"):
        open_table(path + "#Secnd")


@pytest.mark.parametrize("name", ["t.csv", "T.XLSX", "table"])
def test_content_wins_over_the_extension(book, name):
    assert open_table(book([["id"], ["a"]], name)).columns == ("id",)


def test_damaged_and_old_spreadsheets_are_refused_in_words(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(SourceError, match="cannot be read"):
        open_table(str(tmp_path / "a.xlsx"))
    (tmp_path / "a.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))
    with pytest.raises(SourceError, match=r"Save it as \.xlsx"):
        open_table(str(tmp_path / "a.xls"))


def test_parquet_keeps_its_types_and_counts_its_rows(tmp_path):
    path = tmp_path / "t.parquet"
    data = {"id": ["007", "b"], "score": [1.5, None], "tags": [["x", "y"], []], "raw": [b"1", b"2"]}
    pq.write_table(pa.table(data), path)
    table = open_table(str(path))
    assert table.columns == ("id", "score", "tags")
    first, second = table.rows()
    assert first.cells == {"id": "007", "score": 1.5, "tags": ["x", "y"]}
    assert (second.cells["score"], second.place) == (None, f"{path}:2")


def test_parquet_that_holds_recordings_is_sent_to_its_own_reader(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"audio": [{"bytes": b"1", "path": "a.wav"}]}), path)
    with pytest.raises(SourceError, match="--from huggingface"):
        open_table(str(path))


def test_damaged_parquet_is_refused_in_words(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(SourceError, match="cannot be read"):
        open_table(str(tmp_path / "t.parquet"))
