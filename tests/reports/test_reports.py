import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.reports.page import Page, figures, player, section, side_by_side, table, text, titled
from sonant.reports.plots import bars, curves, histogram
from sonant.reports.terminal import text_table

ANY_FLOATS = st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=40)


class Balance(HTMLParser):
    """Notes every element that is opened and never closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":  # closed by nothing
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read(html: str) -> str:
    parser = Balance()
    parser.feed(html)
    assert not parser.open
    return " ".join(parser.words)


def full_page() -> str:
    page = Page("Corpus <b>x</b>", "a & b")
    page.add(section("Facts", figures({"hours": "1.5"}), text("1 < 2"), note="see <here>"))
    page.add(side_by_side(titled("t", histogram([1.0, 2.0], unit="s")), bars({"a": 3, "b": 1}), player(b"RIFF")))
    page.add(table(["name", "sound"], [["<script>alert(1)</script>", player(b"x")], [None, 3.14159]]))
    page.add(curves({"train": ([0, 1, 2], [3.0, 2.0, 1.0]), "dev": ([0, 2], [3.1, math.nan])}, unit="step"))
    return page.html()


def test_a_page_asks_nothing_of_anybody():
    html = full_page()
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", html)
    assert "http" not in html
    assert "@import" not in html


def test_what_people_wrote_is_shown_and_never_run():
    html = full_page()
    assert "<script>alert" not in html
    assert "<b>x</b>" not in html
    assert "<script>alert(1)</script>" in read(html)


@given(values=ANY_FLOATS)
def test_a_histogram_stands_for_any_numbers(values):
    html = histogram(values, unit="s")
    read(html)
    assert "nan" not in html
    assert "inf" not in html


@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_a_histogram_counts_every_value_once(values):
    counts = [int(found.replace(",", "")) for found in re.findall(r": ([\d,]+)</title>", histogram(values, unit="s"))]
    assert sum(counts) == len(values)


@given(values=ANY_FLOATS, is_log=st.booleans())
def test_curves_stand_for_any_numbers_and_leave_gaps_where_there_is_no_value(values, is_log):
    html = curves({"loss": (range(len(values)), values)}, unit="step", is_log=is_log)
    read(html)
    assert "nan" not in html
    assert "inf" not in html


def test_a_curve_is_cut_where_a_value_is_missing():
    html = curves({"loss": (range(5), [1, 2, math.nan, 2, 1])}, unit="step")
    assert html.count("<polyline") == 2


def test_long_curves_stay_small():
    assert len(curves({"loss": (range(100_000), np.random.default_rng(0).random(100_000))}, unit="step")) < 30_000


def test_bars_beyond_the_most_are_summed_up_not_dropped():
    html = bars({f"name {index}": 10 for index in range(20)}, most=5)
    assert "16 others" in html
    assert ">160<" in html


def test_the_terminal_sets_numbers_to_the_right_and_names_to_the_left():
    shown = text_table(["name", "n"], [["a", 1], ["bcd", 1000]], indent="")
    assert shown.splitlines() == ["name      n", "a         1", "bcd   1,000"]


@pytest.mark.parametrize("wide", ["日本語", "e\u0301", "x" * 500])
def test_the_terminal_aligns_wide_combining_and_endless_text(wide):
    lines = text_table(["name", "n"], [[wide, 1], ["abc", 2]]).splitlines()
    assert lines[2].endswith("2")
    assert max(map(len, lines)) < 80
