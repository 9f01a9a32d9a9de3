"""Closeness of ratings equals scipy's and scikit-learn's, and keeps the laws of its figures."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.metrics import closeness

ratings = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=20)

REFERENCES, PREDICTIONS = [1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 4.0, 8.0]  # means 2.5 and 4, deviations worked out by hand


def test_figures_are_those_worked_out_by_hand():
    covariance, spreads = 10.0, (5.0, 24.0)
    assert closeness.pearson(REFERENCES, PREDICTIONS) == pytest.approx(covariance / np.sqrt(5 * 24))
    assert closeness.concordance(REFERENCES, PREDICTIONS) == pytest.approx(2 * covariance / (sum(spreads) + 4 * 1.5**2))
    assert closeness.mean_absolute_error(REFERENCES, PREDICTIONS) == pytest.approx((1 + 0 + 1 + 4) / 4)
    assert closeness.root_mean_square_error(REFERENCES, PREDICTIONS) == pytest.approx(np.sqrt((1 + 0 + 1 + 16) / 4))
    np.testing.assert_array_equal(closeness.ranks(PREDICTIONS), [1.5, 1.5, 3, 4])
    assert closeness.spearman(REFERENCES, PREDICTIONS) == pytest.approx(4.5 / np.sqrt(5 * 4.5))


@given(ratings=ratings)
def test_concordance_is_never_further_from_zero_than_pearson(ratings):
    references, predictions = np.array(ratings, float).T
    pearson = closeness.pearson(references, predictions)
    if not np.isnan(pearson):
        assert abs(closeness.concordance(references, predictions)) <= abs(pearson) + 1e-12


@given(ratings=ratings, slope=st.integers(1, 5), shift=st.integers(-9, 9))
def test_scale_and_shift_change_concordance_but_no_correlation(ratings, slope, shift):
    references, predictions = np.array(ratings, float).T
    moved = slope * predictions + shift
    for figure in (closeness.pearson, closeness.spearman):
        assert figure(references, moved) == pytest.approx(figure(references, predictions), nan_ok=True)


def test_only_equal_ratings_are_in_full_concordance():
    rising = np.arange(5.0)
    assert closeness.concordance(rising, rising) == pytest.approx(1.0)
    assert closeness.concordance(rising, rising + 1) < 1.0


def test_nothing_correlates_with_a_constant():
    constant = [0.1] * 3 + [0.1 * 3 / 3]
    for figure in (closeness.pearson, closeness.spearman):
        assert np.isnan(figure([1, 2, 3, 4], [0.1] * 4))
    assert closeness.concordance([1, 2, 3, 4], constant) == pytest.approx(0.0)


def test_without_ratings_there_is_no_figure():
    figures = closeness.pearson, closeness.spearman, closeness.concordance
    figures = *figures, closeness.mean_absolute_error, closeness.root_mean_square_error, closeness.roc_area
    assert np.isnan([figure([], []) for figure in figures]).all()


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    is_positive, scores = np.array([True, True, False, False, False]), np.array([0.9, 0.4, 0.4, 0.1, 0.7])
    pairs = [(p > n) + 0.5 * (p == n) for p in scores[is_positive] for n in scores[~is_positive]]
    assert closeness.roc_area(is_positive, scores) == pytest.approx(np.mean(pairs))
    assert np.isnan(closeness.roc_area([True, True], [1.0, 2.0]))


@settings(deadline=None)
@given(ratings=ratings)
def test_figures_equal_those_of_scipy_and_scikit_learn(ratings):
    stats, theirs = pytest.importorskip("scipy.stats"), pytest.importorskip("sklearn.metrics")
    references, predictions = np.array(ratings, float).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = {
            closeness.pearson: stats.pearsonr(references, predictions)[0],
            closeness.spearman: stats.spearmanr(references, predictions)[0],
            closeness.mean_absolute_error: theirs.mean_absolute_error(references, predictions),
            closeness.root_mean_square_error: theirs.mean_squared_error(references, predictions) ** 0.5,
        }
        for figure, expected in pairs.items():
            assert figure(references, predictions) == pytest.approx(expected, nan_ok=True), figure
        if 0 < (references > 5).sum() < len(references):
            area = theirs.roc_auc_score(references > 5, predictions)
            assert closeness.roc_area(references > 5, predictions) == pytest.approx(area)
