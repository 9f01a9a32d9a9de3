"""Which frames are hidden and what they are told apart from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.batches.masking import MaskingConfig, hidden_frames, negatives_within


@given(
    num_frames=st.integers(0, 60),
    probability=st.floats(0, 1),
    span=st.integers(1, 20),
    min_spans=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_any_utterance_with_a_frame_has_at_least_one_hidden(num_frames, probability, span, min_spans, seed):
    config = MaskingConfig(probability=probability, span=span, min_spans=min_spans)
    hidden = hidden_frames(num_frames, config, np.random.default_rng(seed))
    assert hidden.shape == (num_frames,)
    assert hidden.any() == (num_frames > 0)


@given(num_frames=st.integers(10, 400), seed=st.integers(0, 1000))
def test_frames_are_hidden_in_whole_spans(num_frames, seed):
    hidden = hidden_frames(num_frames, MaskingConfig(), np.random.default_rng(seed))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], hidden.astype(int), [0]])))
    assert ((edges[1::2] - edges[::2]) >= 10).all()


def test_the_defaults_hide_49_percent():
    shares = [hidden_frames(999, MaskingConfig(), np.random.default_rng(seed)).mean() for seed in range(300)]
    assert np.mean(shares) == pytest.approx(0.49, abs=0.01)


def test_rounding_is_by_chance_so_that_short_utterances_get_their_due():
    config = MaskingConfig(probability=0.5, span=4)  # 2.5 spans of 20 frames
    hidden = [hidden_frames(20, config, np.random.default_rng(seed)).sum() for seed in range(500)]
    assert len(set(hidden)) > 2
    assert max(hidden) == 12
    assert min(hidden) < 8


def test_half_of_an_utterance_shorter_than_a_span_is_hidden():
    for num_frames in range(1, 10):
        hidden = hidden_frames(num_frames, MaskingConfig(), np.random.default_rng(0))
        assert hidden.sum() == max(num_frames // 2, 1)


@given(num_hidden=st.integers(2, 50), count=st.integers(1, 30), seed=st.integers(0, 1000))
def test_a_negative_is_another_hidden_frame(num_hidden, count, seed):
    drawn = negatives_within(num_hidden, count, np.random.default_rng(seed))
    assert drawn.shape == (num_hidden, count)
    assert ((drawn >= 0) & (drawn < num_hidden) & (drawn != np.arange(num_hidden)[:, None])).all()


def test_negatives_are_drawn_evenly_from_all_the_others():
    drawn = negatives_within(5, 20_000, np.random.default_rng(0))
    for own, row in enumerate(drawn):
        shares = np.bincount(row, minlength=5) / len(row)
        np.testing.assert_allclose(shares, np.where(np.arange(5) == own, 0, 0.25), atol=0.02)


@pytest.mark.parametrize("num_hidden", [0, 1])
def test_too_few_hidden_frames_are_no_reason_to_fail(num_hidden):
    assert negatives_within(num_hidden, 7, np.random.default_rng(0)).shape == (num_hidden, 7)
