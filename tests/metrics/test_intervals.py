"""Intervals hold what they promise: they are those of whole groups, repeatable, and near the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import ConfigError
from sonant.metrics.intervals import BootstrapConfig, figure_interval, mean_interval, ratio_interval


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_an_interval_of_means_is_about_two_standard_errors_wide(rng):
    values = rng.normal(3.0, 2.0, 400)
    interval = mean_interval(values, config=BootstrapConfig(resamples=20_000))
    error = values.std() / 20
    assert interval.value == pytest.approx(values.mean())
    assert [interval.low, interval.high] == pytest.approx(
        [values.mean() - 1.96 * error, values.mean() + 1.96 * error], abs=0.05 * error * 2
    )


def test_nineteen_of_twenty_intervals_hold_the_truth(rng):
    config = BootstrapConfig(resamples=400)
    intervals = [mean_interval(rng.exponential(1.0, 80), config=config) for _ in range(300)]
    share = np.mean([interval.low <= 1.0 <= interval.high for interval in intervals])
    assert 0.88 <= share <= 0.98


def test_utterances_of_one_speaker_are_drawn_together(rng):
    of_speakers = np.repeat(rng.normal(size=20), 50)
    speakers = [f"speaker {number}" for number in np.repeat(np.arange(20), 50)]
    alone, together = mean_interval(of_speakers), mean_interval(of_speakers, speakers)
    assert together.value == pytest.approx(alone.value)
    assert together.high - together.low == pytest.approx(np.sqrt(50) * (alone.high - alone.low), rel=0.2)


@settings(max_examples=20, deadline=None)
@given(data=st.data(), size=st.integers(2, 12))
def test_the_order_of_utterances_with_named_groups_does_not_matter(data, size):
    rows = [
        (data.draw(st.integers(0, 5)), data.draw(st.integers(1, 9)), data.draw(st.sampled_from("xyz")))
        for _ in range(size)
    ]
    shuffled = data.draw(st.permutations(rows))
    config = BootstrapConfig(resamples=100)
    a, b = (ratio_interval(*zip(*some, strict=True), config) for some in (rows, shuffled))
    np.testing.assert_array_equal([a.value, a.low, a.high], [b.value, b.low, b.high])


def test_the_same_seed_gives_the_same_interval_and_another_seed_another(rng):
    values = rng.normal(size=30)
    first, again, other = (mean_interval(values, config=BootstrapConfig(seed=seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_a_ratio_weighs_utterances_by_their_denominators():
    interval = ratio_interval([1, 0], [1, 3])
    assert interval.value == 0.25
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_any_figure_has_the_interval_of_the_ratio_that_it_equals(rng):
    errors, words = rng.integers(0, 4, 60), rng.integers(4, 9, 60)
    groups = [f"s{number}" for number in rng.integers(0, 9, 60)]
    config = BootstrapConfig(resamples=300)
    figure = figure_interval(lambda some: errors[some].sum() / words[some].sum(), 60, groups, config)
    ratio = ratio_interval(errors, words, groups, config)
    assert [figure.value, figure.low, figure.high] == pytest.approx([ratio.value, ratio.low, ratio.high])


def test_a_wider_level_holds_a_narrower_one(rng):
    values = rng.normal(size=50)
    wide, narrow = (mean_interval(values, config=BootstrapConfig(level=level)) for level in (0.99, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_one_speaker_says_nothing_of_others():
    interval = mean_interval([1.0, 2.0, 3.0], ["only"] * 3)
    assert interval.value == 2.0
    assert np.isnan([interval.low, interval.high]).all()


def test_resamples_that_hold_no_word_are_left_out():
    interval = ratio_interval([1, 0, 0], [2, 0, 0])
    assert (interval.value, interval.low, interval.high) == (0.5, 0.5, 0.5)


def test_nothing_at_all_has_no_figure():
    assert np.isnan(ratio_interval([], []).value)
    assert np.isnan(figure_interval(lambda some: some.sum() / max(1, len(some)) or np.nan, 0).low)


def test_levels_and_resamples_out_of_bounds_are_refused():
    with pytest.raises(ConfigError, match="level"):
        BootstrapConfig(level=95)
    with pytest.raises(ConfigError, match="resamples"):
        BootstrapConfig(resamples=1)


def test_many_utterances_are_drawn_in_pieces_of_bounded_size(monkeypatch, rng):
    values = rng.normal(size=64)
    monkeypatch.setattr("sonant.metrics.intervals._CELLS", 640)
    pieces = mean_interval(values, config=BootstrapConfig(resamples=1001))
    monkeypatch.undo()
    assert pieces == mean_interval(values, config=BootstrapConfig(resamples=1001))
