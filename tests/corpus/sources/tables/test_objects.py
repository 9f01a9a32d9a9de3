from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import SourceError
from sonant.corpus.sources.tables.rows import open_table
from sonant.corpus.sources.tables.tabular import Row

ROWS = [{"id": "007", "text": "one\ntwo"}, {"id": "b", "score": 3}]
values = st.none() | st.integers() | st.text(max_size=8) | st.lists(st.text(max_size=3), max_size=2)
objects = st.dictionaries(st.sampled_from(["id", "text", "ü", "n"]), values, max_size=4)


def opened(path, content):
    path.write_text(content, encoding="utf-8")
    table = open_table(str(path))
    return table, list(table.rows())


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(objects, min_size=1, max_size=5), indent=st.sampled_from([None, 1]), name=st.sampled_from("ab"))
def test_lists_and_lines_of_objects_give_the_same_rows(tmp_path_factory, rows, indent, name):
    folder = tmp_path_factory.mktemp("json")
    _, whole = opened(folder / f"{name}.json", json.dumps(rows, indent=indent, ensure_ascii=name == "a"))
    assert [row.cells for row in whole] == rows
    _, lines = opened(folder / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    if not any(row and all(isinstance(cell, dict) for cell in row.values()) for row in rows[:1]):
        assert [row.cells for row in lines] == rows


def test_rows_know_their_lines(tmp_path):
    table, rows = opened(tmp_path / "t.jsonl", '{"id": "a"}\n\n{"id": "b", "text": "x"}\n')
    assert [row.place for row in rows] == [f"{table.location}:1", f"{table.location}:3"]
    assert table.columns == ("id", "text")
    table, rows = opened(tmp_path / "t.json", '[\n {"id": "a"},\n {"id":\n  "b"}\n]')
    assert [row.place for row in rows] == [f"{table.location}:2", f"{table.location}:3"]


def test_an_object_of_objects_is_a_table_by_key(tmp_path):
    table, rows = opened(tmp_path / "speakers.json", json.dumps({"01": {"age": 30}, "04": {"age": "23"}}, indent=1))
    assert [row.cells for row in rows] == [{"key": "01", "age": 30}, {"key": "04", "age": "23"}]
    assert [row.place for row in rows] == [f"{table.location}:2", f"{table.location}:5"]
    assert opened(tmp_path / "one.json", '{"01": {"age": 30}}')[1][0].cells == {"key": "01", "age": 30}


def test_an_object_of_values_is_a_table_of_two_columns(tmp_path):
    _, rows = opened(tmp_path / "texts.json", '{\n"a.wav": "one",\n"b.wav": "two"}')
    assert [row.cells for row in rows] == [{"key": "a.wav", "value": "one"}, {"key": "b.wav", "value": "two"}]


def test_lines_of_json_may_bear_the_other_extension(tmp_path):
    _, rows = opened(tmp_path / "manifest.json", "".join(json.dumps(row) + "\n" for row in ROWS))
    assert [row.cells for row in rows] == ROWS


def test_a_bad_line_is_told_and_costs_no_other(tmp_path):
    table, rows = opened(tmp_path / "t.jsonl", '{"id": "a"}\n{"id": "b"\n[1]\n{"id": "c"}\n')
    assert [row.cells["id"] for row in rows if isinstance(row, Row)] == ["a", "c"]
    found = [(row.rule, row.place) for row in rows if not isinstance(row, Row)]
    assert found == [("bad-line", f"{table.location}:2"), ("bad-line", f"{table.location}:3")]


def test_damage_in_a_whole_document_names_its_line(tmp_path):
    for content in ('[\n{"id": "a"},\n{"id" "b"}\n]', '[\n{"id": "a"}\n{"id": "b"}]', '[\n{"id": "a"},\n'):
        (tmp_path / "t.json").write_text(content)
        with pytest.raises(SourceError, match=r"t\.json:3: this is not JSON"):
            open_table(str(tmp_path / "t.json"))


def test_an_empty_list_has_no_rows(tmp_path):
    assert opened(tmp_path / "t.json", "[]")[1] == []
