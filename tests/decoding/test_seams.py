"""Windows are joined so that each symbol stands there once, although no two windows place it in the same frame."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.decoding.seams import Stitcher, best_seam
from sonant.decoding.windows import WindowConfig, plan_windows, stitch

FRAMES, CONTEXT, SPACING = 60, 20, 5
BLANK = 0


@st.composite
def heard(draw):
    """The symbols of a recording with the frames that they are said in."""
    symbols = draw(st.lists(st.integers(1, 2), min_size=20, max_size=80))
    gaps = draw(st.lists(st.integers(SPACING, 9), min_size=len(symbols), max_size=len(symbols)))
    return np.array(symbols), np.cumsum(gaps), draw(st.integers(0, 10**6))


def windows_of(symbols, places, seed):
    """One-hot scores of each window: every symbol a frame early, late or in time, and noise at the edges."""
    rng = np.random.default_rng(seed)
    num_frames = int(places[-1]) + 5
    windows = plan_windows(num_frames, WindowConfig(frames=FRAMES, context=CONTEXT))
    parts = []
    for window in windows:
        path = np.zeros(num_frames + 2, int)
        path[places + rng.integers(-1, 2, len(places))] = symbols
        path = path[window.start : window.end]
        edge = CONTEXT // 4
        if window.start:
            path[:edge] = rng.integers(0, 3, edge)
        if window.end < num_frames:
            path[-edge:] = rng.integers(0, 3, edge)
        parts.append(np.eye(3)[path])
    return windows, parts


def written(scores):
    return [symbol for symbol, _ in groupby(scores.argmax(axis=1)) if symbol != BLANK]


def stitched(windows, parts):
    stitcher = Stitcher(CONTEXT, BLANK)
    rows = [stitcher.push(window.start, part) for window, part in zip(windows, parts, strict=True)]
    return np.concatenate([*rows, stitcher.finish()])


@settings(deadline=None)
@given(heard())
def test_no_symbol_is_doubled_or_lost_at_a_seam(said):
    symbols, places, seed = said
    windows, parts = windows_of(symbols, places, seed)
    joined = stitched(windows, parts)
    assert len(joined) == windows[-1].end
    assert written(joined) == symbols.tolist()


def test_seams_at_fixed_frames_would_double_and_lose_symbols():
    """What the stitcher is there for."""
    num_wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        symbols, places = rng.integers(1, 3, 60), np.cumsum(rng.integers(SPACING, 8, 60))
        num_wrong += written(stitch(*windows_of(symbols, places, seed))) != symbols.tolist()
    assert num_wrong > 5


@given(seed=st.integers(0, 1000), num_frames=st.integers(1, 300), context=st.integers(0, 12))
def test_windows_that_agree_give_the_scores_of_the_whole(seed, num_frames, context):
    whole = np.random.default_rng(seed).normal(size=(num_frames, 3))
    windows = plan_windows(num_frames, WindowConfig(frames=25, context=context))
    stitcher = Stitcher(context, BLANK)
    rows = [stitcher.push(window.start, whole[window.start : window.end]) for window in windows]
    np.testing.assert_array_equal(np.concatenate([*rows, stitcher.finish()]), whole)


def test_a_seam_lies_in_the_pause_rather_than_between_two_letters():
    path = np.array([1, 0, 2, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0])
    assert best_seam(np.eye(3)[path], np.eye(3)[path], 10, 5, BLANK) in range(8, 14)


def test_without_context_windows_stand_side_by_side():
    stitcher = Stitcher(0, BLANK)
    assert len(stitcher.push(0, np.eye(3))) == 0
    assert len(stitcher.push(3, np.eye(3))) == 3
    assert len(stitcher.finish()) == 3
