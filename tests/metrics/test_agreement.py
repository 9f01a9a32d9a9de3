"""Agreement of labels equals scikit-learn's wherever both have an answer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.metrics import agreement

answers = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)

# Twelve patients graded 0 to 2, worked out by hand.
REFERENCES = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
PREDICTIONS = [0, 0, 0, 0, 1, 2, 1, 1, 1, 0, 2, 1]
TABLE = np.array([[4, 1, 1], [1, 3, 0], [0, 1, 1]])


def test_a_table_counts_what_was_in_rows_and_what_was_said_in_columns():
    np.testing.assert_array_equal(agreement.confusions(REFERENCES, PREDICTIONS, 3), TABLE)


def test_figures_are_those_worked_out_by_hand():
    assert agreement.accuracy(TABLE) == pytest.approx(8 / 12)
    np.testing.assert_allclose(agreement.recalls(TABLE), [4 / 6, 3 / 4, 1 / 2])
    np.testing.assert_allclose(agreement.precisions(TABLE), [4 / 5, 3 / 5, 1 / 2])
    np.testing.assert_allclose(agreement.f1_scores(TABLE), [8 / 11, 6 / 9, 2 / 4])
    assert agreement.balanced_accuracy(TABLE) == pytest.approx((4 / 6 + 3 / 4 + 1 / 2) / 3)
    assert agreement.macro_f1(TABLE) == pytest.approx((8 / 11 + 6 / 9 + 2 / 4) / 3)
    assert agreement.kappa(TABLE) == pytest.approx(1 - (4 / 12) / (1 - (6 * 5 + 4 * 5 + 2 * 2) / 144))


def test_a_miss_by_two_grades_costs_twice_or_four_times_as_much():
    # expected cells, times 12: 30 30 12 / 20 20 8 / 10 10 4
    assert agreement.kappa(TABLE, "linear") == pytest.approx(1 - (3 + 2 * 1) / ((30 + 20 + 8 + 10 + 2 * 22) / 12))
    assert agreement.kappa(TABLE, "quadratic") == pytest.approx(1 - (3 + 4 * 1) / ((30 + 20 + 8 + 10 + 4 * 22) / 12))


def test_guessing_the_commonest_class_is_accurate_but_balanced_it_is_chance():
    table = agreement.confusions([0] * 9 + [1], [0] * 10, 2)
    assert (agreement.accuracy(table), agreement.balanced_accuracy(table), agreement.kappa(table)) == (0.9, 0.5, 0.0)


def test_classes_that_never_occur_do_not_count():
    table = agreement.confusions([0, 1], [0, 1], 5)
    assert agreement.balanced_accuracy(table) == agreement.macro_f1(table) == 1.0
    assert np.isnan(agreement.recalls(table)[2:]).all()


def test_without_answers_there_is_no_figure():
    empty = agreement.confusions([], [], 3)
    figures = agreement.accuracy, agreement.balanced_accuracy, agreement.macro_f1, agreement.kappa
    assert np.isnan([figure(empty) for figure in figures]).all()


@settings(deadline=None)
@given(answers=answers)
def test_figures_equal_those_of_scikit_learn(answers):
    theirs = pytest.importorskip("sklearn.metrics")
    references, predictions = map(list, zip(*answers, strict=True))
    table = agreement.confusions(references, predictions, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert agreement.accuracy(table) == pytest.approx(theirs.accuracy_score(references, predictions))
        balanced = theirs.balanced_accuracy_score(references, predictions)
        assert agreement.balanced_accuracy(table) == pytest.approx(balanced)
        assert agreement.macro_f1(table) == pytest.approx(theirs.f1_score(references, predictions, average="macro"))
        for weights in ("none", "linear", "quadratic"):
            kappa = theirs.cohen_kappa_score(
                references, predictions, labels=range(4), weights=None if weights == "none" else weights
            )
            assert agreement.kappa(table, weights) == pytest.approx(kappa, nan_ok=True)
