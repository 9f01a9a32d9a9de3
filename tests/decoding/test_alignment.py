"""An alignment is the likeliest of all paths that write a text; together they are the text's probability."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.lengths import Lengths, frames_needed_by_ctc
from sonant.decoding.alignment import align, text_log_probs
from sonant.decoding.long_alignment import align_in_stretches

BLANK = 0


def paths_of(text, log_probs):
    """Every path that writes the text, with its log-probability."""
    for path in product(range(log_probs.shape[1]), repeat=len(log_probs)):
        if tuple(token for token, _ in groupby(path) if token != BLANK) == tuple(text):
            yield path, sum(log_probs[frame, token] for frame, token in enumerate(path))


def random_scores(seed, num_rows, num_frames, num_tokens=3):
    scores = np.random.default_rng(seed).normal(0, 2, (num_rows, num_frames, num_tokens))
    return scores - np.logaddexp.reduce(scores, axis=2, keepdims=True)


rows = st.lists(
    st.tuples(st.lists(st.integers(1, 2), max_size=4), st.integers(0, 6)), min_size=1, max_size=4
)  # text, frames


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), rows=rows)
def test_an_alignment_is_the_best_of_all_paths_and_their_sum_is_the_text(seed, rows):
    texts, num_frames = map(list, zip(*rows, strict=True))
    log_probs = random_scores(seed, len(rows), 6)
    lengths = Lengths(np.array(num_frames))
    sums = text_log_probs(log_probs, lengths, texts, BLANK)
    for row, alignment in enumerate(align(log_probs, lengths, texts, BLANK)):
        paths = dict(paths_of(texts[row], log_probs[row, : num_frames[row]]))
        if not paths or not num_frames[row]:
            assert alignment is None
            assert sums[row] == -np.inf
            continue
        best = max(paths, key=lambda path: paths[path])
        assert alignment.log_prob == pytest.approx(paths[best])
        assert sums[row] == pytest.approx(np.logaddexp.reduce(list(paths.values())))
        assert alignment.log_prob <= sums[row] + 1e-9
        path = np.zeros(num_frames[row], int)
        for token, start, end in zip(texts[row], alignment.starts, alignment.ends, strict=True):
            path[start:end] = token
        assert tuple(path) == best


@pytest.mark.parametrize(("text", "num_frames"), [([1, 1, 2], 3), ([1], 0), ([1, 2], 1)])
def test_a_text_that_its_frames_cannot_hold_has_no_alignment(text, num_frames):
    assert num_frames < frames_needed_by_ctc(text) or not num_frames
    log_probs = random_scores(0, 1, 5)
    assert align(log_probs, Lengths(np.array([num_frames])), [text], BLANK) == [None]


def test_several_texts_may_lie_on_one_utterance():
    log_probs = random_scores(1, 2, 6)
    lengths = Lengths(np.array([6, 4]))
    texts = [[1, 2], [2], [1], [2, 1]]
    together = align(log_probs, lengths, texts, BLANK, utterances=[1, 0, 1, 1])
    for text, row, alignment in zip(texts, [1, 0, 1, 1], together, strict=True):
        alone = align(log_probs[row : row + 1], Lengths(lengths.values[row : row + 1]), [text], BLANK)[0]
        assert alignment.log_prob == pytest.approx(alone.log_prob)
        np.testing.assert_array_equal(alignment.starts, alone.starts)


def test_texts_that_do_not_fit_side_by_side_are_aligned_in_turns(monkeypatch):
    log_probs = random_scores(2, 5, 8)
    lengths = Lengths(np.array([8, 3, 5, 8, 6]))
    texts = [[1, 2, 1], [1], [2, 2], [1, 2], []]
    whole = align(log_probs, lengths, texts, BLANK)
    monkeypatch.setattr("sonant.decoding.alignment._CELLS", 100)
    for some, others in zip(align(log_probs, lengths, texts, BLANK), whole, strict=True):
        assert some.log_prob == others.log_prob
        np.testing.assert_array_equal(some.ends, others.ends)


def said_with_pauses(rng, num_tokens, num_labels=600):
    """Scores (T, V) of a text with pauses, the text, and the frame of each of its labels."""
    text = rng.integers(1, num_tokens, num_labels)
    frames = np.cumsum(2 + rng.integers(0, 4, num_labels) + 300 * (rng.random(num_labels) < 0.01))
    path = np.zeros(frames[-1] + 3, int)
    path[frames] = text
    scores = rng.normal(0, 1.5, (len(path), num_tokens))
    scores[np.arange(len(path)), path] += 6
    return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True), text.tolist(), frames


def test_a_long_text_is_aligned_in_stretches_as_in_the_whole(monkeypatch):
    log_probs, text, frames = said_with_pauses(np.random.default_rng(3), 6)
    lengths = Lengths(np.array([len(log_probs)]))
    whole = align(log_probs[None], lengths, [text], BLANK)[0]
    monkeypatch.setattr("sonant.decoding.alignment._CELLS", 200)
    parts = align(log_probs[None], lengths, [text], BLANK)[0]
    assert_same(parts, whole)
    assert (np.abs(parts.starts - frames) <= 1).mean() > 0.95


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6), num_labels=st.integers(0, 90), spare=st.integers(0, 60), num_tokens=st.integers(2, 9)
)
def test_stretches_have_the_likeliest_path_of_any_text(seed, num_labels, spare, num_tokens):
    rng = np.random.default_rng(seed)
    text = rng.integers(1, num_tokens, num_labels).tolist()
    num_frames = max(1, frames_needed_by_ctc(text) + spare)
    log_probs = random_scores(seed, 1, num_frames, num_tokens)
    whole = align(log_probs, Lengths(np.array([num_frames])), [text], BLANK)[0]
    assert_same(align_in_stretches(log_probs[0], text, BLANK), whole)


def assert_same(some, others):
    assert some.log_prob == pytest.approx(others.log_prob)
    np.testing.assert_array_equal(some.starts, others.starts)
    np.testing.assert_array_equal(some.ends, others.ends)
    np.testing.assert_allclose(some.peaks, others.peaks)


def test_a_long_stretch_that_is_not_in_the_text_throws_nothing_off():
    """It is as long as the text is said, and full of its letters; only near it labels are drawn into it."""
    log_probs, text, frames = said_with_pauses(np.random.default_rng(4), 12)
    other, _, _ = said_with_pauses(np.random.default_rng(5), 12)
    half = len(text) // 2
    seam = (frames[half - 1] + frames[half]) // 2
    joined = np.concatenate([log_probs[:seam], other, log_probs[seam:]])
    found = align_in_stretches(joined, text, BLANK)
    true = np.where(frames < seam, frames, frames + len(other))
    far = np.abs(np.arange(len(text)) - half) > 60
    assert (np.abs(found.starts - true)[far] <= 1).mean() > 0.95


def test_impossible_scores_still_have_a_likeliest_path():
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.eye(3)[[0, 1, 1, 0, 2]])[None]
    alignment = align(log_probs, Lengths(np.array([5])), [[1, 1, 2]], BLANK)[0]
    assert np.isfinite(alignment.log_prob)
    assert alignment.starts[2] == 4
