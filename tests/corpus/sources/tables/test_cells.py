from __future__ import annotations

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.corpus.sources.options import MISSING
from sonant.corpus.sources.tables.cells import CellError, is_missing, number_of, present, seconds_of, text_of


@given(st.integers(0, 99 * 3600 * 1000))
def test_a_clock_means_its_seconds(milliseconds):
    minutes, rest = divmod(milliseconds, 60000)
    clock = f"{minutes // 60}:{minutes % 60:02}:{rest / 1000:06.3f}"
    assert seconds_of(clock) == pytest.approx(milliseconds / 1000)
    assert seconds_of(clock.replace(".", ",")) == seconds_of(clock)


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        ("12.5", 12.5),
        ("12,5", 12.5),
        (" 7 ", 7.0),
        ("01:30", 90.0),
        ("90:00.5", 5400.5),
        ("350 ms", 0.35),
        ("1.5s", 1.5),
        ("2 min", 120.0),
        (3, 3.0),
        (datetime.time(0, 1, 2, 500000), 62.5),
        (datetime.timedelta(hours=25), 90000.0),
    ],
)
def test_times_are_read_as_people_write_them(cell, seconds):
    assert seconds_of(cell) == pytest.approx(seconds)


@pytest.mark.parametrize("cell", ["", "soon", "1:99", "1:60:00", "00:00:01:12", "1.2.3", "nan", "1;5", "five s"])
def test_what_is_no_time_is_refused(cell):
    with pytest.raises(CellError):
        seconds_of(cell)


def test_milliseconds_are_milliseconds():
    assert seconds_of("1500", 0.001) == 1.5


@pytest.mark.parametrize(
    ("cell", "number"),
    [("7", 7.0), ("-0,5", -0.5), (".5", 0.5), ("1e-3", 0.001), (7, 7.0), ("+3.", 3.0)],
)
def test_numbers_are_numbers(cell, number):
    assert number_of(cell) == number


@pytest.mark.parametrize("cell", ["007", "", "-", "1 2", "1.234,5", "x1", True, "inf", float("nan"), None, "٣"])
def test_names_are_no_numbers(cell):
    assert number_of(cell) is None


@pytest.mark.parametrize(
    ("cell", "text"),
    [(7.0, "7"), (7.5, "7.5"), (7, "7"), (True, "true"), (None, ""), (" a ", "a"), ({"a": [1]}, '{"a": [1]}')],
)
def test_a_cell_is_written_as_a_person_would(cell, text):
    assert text_of(cell) == text


def test_missing_values_are_none_and_nothing_else_is():
    cells = {"a": "NA", "b": " ", "c": math.nan, "d": None, "e": 0, "f": "0", "g": "nap"}
    assert present(cells, MISSING) == {"a": None, "b": None, "c": None, "d": None, "e": 0, "f": "0", "g": "nap"}
    assert is_missing(-9, ("-9",))
    assert not is_missing("NA", ("-9",))
