from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import ConfigError, SourceError
from sonant.corpus.sources.tables.rows import open_table
from sonant.corpus.sources.tables.tabular import Row
from sonant.corpus.utterance import Finding


@pytest.fixture
def table(tmp_path):
    """Opens a table with this content; gives its columns, its rows as (line, cells) and its faults."""

    def opened(content: str, name: str = "t.csv", **options):
        path = tmp_path / name
        path.write_bytes(content.encode())
        found = open_table(str(path), **options)
        rows = list(found.rows())
        lines = [(int(row.place.rpartition(":")[2]), list(row.cells.values())) for row in rows if isinstance(row, Row)]
        return found.columns, lines, [row for row in rows if isinstance(row, Finding)]

    return opened


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=("Cs",)), max_size=12)
first_cells = st.text("abcäöü\"',;|\t\n 1", min_size=1, max_size=8).filter(str.strip)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(first_cells, cells, cells), min_size=1, max_size=8),
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_whatever_a_program_writes_is_read_row_by_row_with_the_lines_they_begin_at(
    tmp_path_factory, rows, delimiter, end, quoting
):
    written, lines = io.StringIO(), []
    writer = csv.writer(written, delimiter=delimiter, lineterminator=end, quoting=quoting)
    for row in [("id", "text", "note"), *rows]:
        so_far = written.getvalue().replace("\r\n", "\n").replace("\r", "\n")
        lines.append(so_far.count("\n") + 1)
        writer.writerow(row)
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(written.getvalue().encode())
    found = list(open_table(str(path)).rows())
    expected = [(f"{path}:{line}", [cell.strip() for cell in row]) for line, row in zip(lines[1:], rows, strict=True)]
    assert [(row.place, list(row.cells.values())) for row in found] == expected


@pytest.mark.parametrize(
    "content",
    [
        "id,text\na,b c\n",
        "id;text\na;b c\n",
        "id\ttext\na\tb c\n",
        "id|text\na|b c\n",
        "\ufeffid,text\r\na,b c\r\n",
        "sep=;\nid;text\na;b c\n",
        "\n\nid,text\n\na,b c\n,\n",
        'id,"text"\na, "b c"\n',
        "id,text,\na,b c,\n",
    ],
)
def test_common_ways_of_writing_a_table_say_the_same(table, content):
    columns, rows, findings = table(content)
    assert columns[:2] == ("id", "text")
    assert ([row[:2] for _, row in rows], findings) == ([["a", "b c"]], [])


def test_decimal_commas_and_commas_in_texts_do_not_hide_the_delimiter(table):
    columns, rows, _ = table("id;start;text\na;1,5;one, two\nb;2,5;three, four, five\n")
    assert columns == ("id", "start", "text")
    assert rows == [(2, ["a", "1,5", "one, two"]), (3, ["b", "2,5", "three, four, five"])]


def test_a_quoted_cell_may_hold_delimiters_quotes_and_line_ends(table):
    _, rows, findings = table('id,text\na,"one, ""two""\nthree"\nb,four\n')
    assert rows == [(2, ["a", 'one, "two"\nthree']), (4, ["b", "four"])]
    assert findings == []


@pytest.mark.parametrize(
    "text", ['"Hello" he said', '"never closed', 'he said "hi"', '"" empty', '"', '5" nails', "'tis"]
)
def test_quotes_that_quote_nothing_are_part_of_the_text(table, text):
    _, rows, findings = table(f'id\ttext\na\t{text}\nb\tnext\nc\t"third"\n', "t.tsv")
    assert rows == [(2, ["a", text]), (3, ["b", "next"]), (4, ["c", "third"])]
    assert findings == []


def test_a_row_of_another_width_is_told_with_its_line_and_costs_no_other(table):
    _, rows, findings = table('id,text\na,"x\ny"\nb,one, two\nc\nd,e\n')
    assert [line for line, _ in rows] == [2, 6]
    assert [(one.rule, one.place.rpartition(":")[2], one.is_error) for one in findings] == [
        ("bad-line", "4", True),
        ("bad-line", "5", True),
    ]
    assert "3 cells" in findings[0].problem
    assert "2 columns" in findings[0].problem
    assert "1 cell," in findings[1].problem
    assert "a comma" in findings[1].action


def test_a_quote_that_opens_and_never_closes_costs_one_row(table):
    content = "id,text\n" + 'a,"one, two\n' + "".join(f"{n},x\n" for n in range(30000))
    _, rows, findings = table(content)
    assert len(rows) == 30000
    assert [one.place.rpartition(":")[2] for one in findings] == ["2"]


def test_two_columns_of_one_name_are_an_error(table):
    with pytest.raises(SourceError, match=r"t\.csv:1: the header names the column 'text' twice"):
        table("id,text,text\na,b,c\n")


def test_an_empty_table_is_an_error(table):
    with pytest.raises(SourceError, match="empty"):
        table("\n\n")


def test_a_table_of_one_column_is_not_cut(table):
    assert table("path\na b.wav\nc,d.wav\n")[:2] == (("path",), [(2, ["a b.wav"]), (3, ["c,d.wav"])])


@pytest.mark.parametrize(
    ("content", "named", "columns"),
    [
        ("a.wav,hello\nb.wav,world\n", (), ("1", "2")),
        ("LJ001-0001|Printing, in the only sense with which we are here concerned\n", (), ("1", "2")),
        ("Aufnahme;Satz\na.wav;hallo\n", ("Satz",), ("Aufnahme", "Satz")),
        ("Aufnahme;Satz\nx;hallo\n", (), ("Aufnahme", "Satz")),
        ("x;hallo\ny;welt\n", ("1", "2"), ("1", "2")),
        ("path,2019\na.wav,3\n", (), ("path", "2019")),
        (",path\n0,a.wav\n", (), ("1", "path")),
    ],
)
def test_a_header_is_told_from_a_row(table, content, named, columns):
    assert table(content, named=named)[0] == columns


def test_the_first_row_of_a_table_without_a_header_is_a_row(table):
    assert table("a.wav,hello\nb.wav,world\n")[1] == [(1, ["a.wav", "hello"]), (2, ["b.wav", "world"])]


def test_a_delimiter_can_be_told_by_sign_or_by_name(table):
    for told in ("\t", "tab", "\\t"):
        assert table("id,x\ttext\na\tb\n", delimiter=told)[0] == ("id,x", "text")
    with pytest.raises(ConfigError, match="--delimiter"):
        table("id,text\n", delimiter="||")
