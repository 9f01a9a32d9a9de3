"""Estimated times: in order, within the speech, and longer words longer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.decoding.spelling import Spelling
from sonant.decoding.spreading import spread
from sonant.text.tokenizer import SubwordsConfig, train_tokenizer

SPELLING = Spelling(train_tokenizer(["the quick brown fox jumps over a lazy dog"] * 3, SubwordsConfig(size=320)))


@st.composite
def stretches(draw):
    edges = np.cumsum(draw(st.lists(st.integers(1, 50), min_size=2, max_size=8))).tolist()
    return [(first, last) for first, last in zip(edges[::2], edges[1::2], strict=False)]


@given(
    text=st.sampled_from(["the fox", "a lazy dog jumps", "the quick brown fox jumps over a lazy dog"]),
    spans=stretches(),
)
def test_words_follow_one_another_within_the_speech(text, spans):
    ids = SPELLING.tokenizer.encode(text)
    found = spread(ids, [-0.1] * len(ids), -1.0, spans, SPELLING)
    assert found.text == text
    assert [word.text for word in found.words] == text.split()
    times = [time for word in found.words for time in (word.start, word.end)]
    assert all(earlier <= later + 1 for earlier, later in pairwise(times))
    assert spans[0][0] <= times[0]
    assert times[-1] <= spans[-1][1]
    assert all(any(first <= word.start <= last for first, last in spans) for word in found.words)


def test_letters_take_their_share_of_the_speech_and_pauses_none():
    ids = SPELLING.tokenizer.encode("the fox")
    found = spread(ids, [-0.1] * len(ids), -1.0, [(10, 40), (100, 130)], SPELLING)
    first, second = found.words
    assert (first.start, second.end) == (10, 130)
    assert first.end <= 40
    assert found.words[0].confidence == pytest.approx(np.exp(-0.1))


def test_nothing_said_has_no_words():
    found = spread((), (), -0.5, [(0, 10)], SPELLING)
    assert (found.text, found.words, found.log_prob) == ("", (), -0.5)
    assert spread((), (), 0.0, [], SPELLING).text == ""
