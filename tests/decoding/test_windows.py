"""Windows cover a recording once, and join without a seam for whoever sees no further than their context."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.base.errors import ConfigError
from sonant.base.lengths import frames_after
from sonant.decoding.windows import Window, WindowConfig, plan_windows, stitch

KERNELS, STRIDES = (10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2)


@st.composite
def plans(draw):
    context = draw(st.integers(0, 6))
    config = WindowConfig(frames=draw(st.integers(2 * context + 1, 30)), context=context)
    return draw(st.integers(1, 200)), config


def seen(samples, reach):
    """Scores (T, 2) of a recogniser that sees `reach` frames to each side."""
    padded = np.pad(samples, reach)
    wide = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1)
    return np.stack([wide.sum(axis=1), wide.max(axis=1)], axis=1)


@given(plan=plans())
def test_stitched_scores_are_those_of_the_whole(plan):
    num_frames, config = plan
    whole = np.random.default_rng(num_frames).normal(size=num_frames)
    windows = plan_windows(num_frames, config)
    parts = (seen(whole[window.start : window.end], config.context) for window in windows)
    np.testing.assert_allclose(stitch(windows, parts), seen(whole, config.context))


@given(plan=plans())
def test_windows_are_of_one_size_and_keep_each_frame_once(plan):
    num_frames, config = plan
    windows = plan_windows(num_frames, config)
    assert [frame for window in windows for frame in range(window.kept_start, window.kept_end)] == list(
        range(num_frames)
    )
    assert {window.end - window.start for window in windows} == {min(num_frames, config.frames)}
    for window in windows:
        assert window.start == 0 or window.kept_start - window.start >= config.context
        assert window.end == num_frames or window.end - window.kept_end >= config.context


@given(plan=plans())
def test_the_samples_of_a_window_give_its_frames_and_no_more(plan):
    num_frames, config = plan
    for window in plan_windows(num_frames, config):
        start, end = window.samples(KERNELS, STRIDES)
        assert frames_after(end - start, KERNELS, STRIDES) == window.end - window.start
        assert frames_after(end - start - 1, KERNELS, STRIDES) == window.end - window.start - 1
        assert start == window.start * 320


def test_a_short_recording_is_one_window_and_none_is_none():
    assert plan_windows(7, WindowConfig(frames=10, context=2)) == [Window(0, 7, 0, 7)]
    assert plan_windows(0) == []


def test_padding_behind_a_window_is_not_used():
    assert stitch([Window(0, 2, 0, 2)], [np.array([[1.0], [2.0], [9.0]])]).tolist() == [[1.0], [2.0]]


def test_a_context_that_leaves_nothing_is_refused():
    with pytest.raises(ConfigError, match="5 frames on both sides leave nothing of 10"):
        WindowConfig(frames=10, context=5)
