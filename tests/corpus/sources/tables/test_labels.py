from __future__ import annotations

import pytest

from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.labels import Further, Labels


def read(cells, separator=""):
    labels = Labels(["x"], SourceOptions(label_separator=separator))
    rows = [{"x": cell} for cell in cells]
    for row in rows:
        labels.learn(row)
    return [labels.read(row)["x"] for row in rows]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "2,5", "", "NA"], [1.0, 2.5, None, None]),
        (["1", "two", ""], ["1", "two", None]),
        (["01", "02"], ["01", "02"]),
        ([1, 2.5, float("nan"), None], [1.0, 2.5, None, None]),
        ([True, False], ["true", "false"]),
        (["", None], [None, None]),
        ([["a", "b"], ["c"], None], [["a", "b"], ["c"], None]),
    ],
)
def test_a_label_is_one_kind_in_all_rows(cells, values):
    assert read(cells) == values


def test_several_labels_in_a_cell_become_a_list_in_every_row():
    assert read(["a|b", "c", "a| NA |b", ""], "|") == [["a", "b"], ["c"], ["a", "b"], None]
    assert read(["a|b", "c"]) == ["a|b", "c"]
    assert read(["1", "2"], "|") == [1.0, 2.0]


def test_further_columns_keep_their_numbers_unless_a_word_is_among_them():
    further = Further({"age": "age", "n": "n", "tags": "tags"}, SourceOptions().missing)
    rows = [{"age": 30, "n": 1.5, "tags": ["a"]}, {"age": "23", "n": None, "tags": []}]
    for row in rows:
        further.learn(row)
    assert [further.read(row) for row in rows] == [
        {"age": "30", "n": 1.5, "tags": ["a"]},
        {"age": "23", "n": None, "tags": []},
    ]


def test_text_of_a_table_stays_text():
    further = Further({"age": "age"}, SourceOptions().missing)
    further.learn({"age": "30"})
    assert further.read({"age": "30"}) == {"age": "30"}
