"""Two systems are compared utterance by utterance: a small difference that is everywhere is found."""

from __future__ import annotations

import numpy as np
import pytest

from sonant.base.errors import SonantError
from sonant.metrics.comparison import UtteranceTable, compare, compare_figures
from sonant.metrics.intervals import BootstrapConfig, ratio_interval

SPEAKERS, EACH = 30, 10


@pytest.fixture
def words():
    return np.random.default_rng(1).integers(5, 15, SPEAKERS * EACH)


def table(errors, words, order=None):
    order = np.arange(len(words)) if order is None else order
    return UtteranceTable(
        ids=[f"u{place:03}" for place in order],
        errors=errors[order],
        counts=words[order],
        groups=[f"s{place // EACH}" for place in order],
    )


def hard_and_easy(words, rng):
    """Errors that depend much on the speaker."""
    return rng.poisson(words * np.repeat(rng.uniform(0.05, 0.6, SPEAKERS), EACH))


def test_a_difference_smaller_than_the_spread_of_speakers_is_found(words):
    rng = np.random.default_rng(2)
    worse = hard_and_easy(words, rng)
    better = rng.binomial(worse, 0.85)
    found = compare(table(better, words), table(worse, words))
    alone = [ratio_interval(errors, words, table(errors, words).groups) for errors in (better, worse)]
    assert alone[0].high > alone[1].low
    assert found.difference.high < 0
    assert found.chance < 0.01
    assert found.difference.value == pytest.approx(alone[0].value - alone[1].value)


def test_equal_systems_differ_by_nothing_and_surely_by_chance(words):
    errors = hard_and_easy(words, np.random.default_rng(3))
    found = compare(table(errors, words), table(errors, words))
    assert (found.difference.value, found.difference.low, found.difference.high) == (0, 0, 0)
    assert found.chance == 1.0


def test_systems_that_are_alike_are_told_apart_in_one_of_twenty_cases_only():
    rng, config, found = np.random.default_rng(4), BootstrapConfig(resamples=300), 0
    for _ in range(200):
        one, other = (UtteranceTable(ids=range(60), errors=rng.poisson(2, 60), counts=np.full(60, 9)) for _ in "ab")
        found += compare(one, other, config).chance < 0.05
    assert 2 <= found <= 24


def test_exchanged_systems_exchange_the_sign(words):
    rng = np.random.default_rng(5)
    a, b = (table(hard_and_easy(words, rng), words) for _ in range(2))
    there, back = compare(a, b), compare(b, a)
    assert there.difference.low == pytest.approx(-back.difference.high)
    assert there.chance == back.chance


def test_the_order_of_either_table_does_not_matter(words):
    rng = np.random.default_rng(6)
    one, other = hard_and_easy(words, rng), hard_and_easy(words, rng)
    orders = [rng.permutation(len(words)) for _ in range(2)]
    assert compare(table(one, words), table(other, words)) == compare(
        table(one, words, orders[0]), table(other, words, orders[1])
    )


def test_any_figure_is_compared_like_the_ratio_that_it_equals(words):
    rng = np.random.default_rng(7)
    one, other = hard_and_easy(words, rng), hard_and_easy(words, rng)
    config = BootstrapConfig(resamples=200)
    ratio = compare(table(one, words), table(other, words), config)
    figure = compare_figures(
        lambda some: one[some].sum() / words[some].sum(),
        lambda some: other[some].sum() / words[some].sum(),
        len(words),
        table(one, words).groups,
        config,
    )
    assert figure.difference.low == pytest.approx(ratio.difference.low)
    assert figure.chance == ratio.chance


def test_tables_of_other_utterances_are_refused_by_name(words):
    whole = table(words, words)
    with pytest.raises(SonantError, match=r"1 utterances, e\.g\. 'u000', are in one table only, of 299 and 300"):
        compare(table(words, words, np.arange(1, 300)), whole)
    with pytest.raises(SonantError, match="each of them once"):
        compare(table(words, words, np.append(np.arange(300), 0)), whole)


def test_tables_scored_against_other_references_are_refused_by_name(words):
    with pytest.raises(SonantError, match="'u007' is counted by"):
        compare(table(words, words), table(words, words + (np.arange(300) == 7)))
