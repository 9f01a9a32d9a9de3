"""Passages of long scores give the answer of the whole: cut in pauses, searched one by one, joined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.lengths import Lengths
from sonant.decoding.decoders import decode_by_search, decode_greedily
from sonant.decoding.guide import build_guide
from sonant.decoding.passages import PassageCutter, join_answers

BLANK, SPACE, A, B, C = range(5)


def random_scores(seed, num_frames, sharpness=2.0):
    scores = np.random.default_rng(seed).normal(0, sharpness, (num_frames, 5))
    return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)


def certain(path, sure=0.999):
    probs = np.full((len(path), 5), (1 - sure) / 4)
    probs[np.arange(len(path)), path] = sure
    return np.log(probs)


def passages_of(log_probs, spelling, longest, block=7):
    cutter = PassageCutter(spelling, longest)
    found = [one for at in range(0, len(log_probs), block) for one in cutter.push(log_probs[at : at + block])]
    return found + cutter.finish()


def greedily(passage, spelling):
    return decode_greedily(passage.log_probs[None], Lengths(np.array([len(passage.log_probs)])), spelling)


@settings(deadline=None)
@given(
    seed=st.integers(0, 10**6), num_frames=st.integers(1, 120), longest=st.integers(12, 40), block=st.integers(1, 50)
)
def test_the_greedy_answer_of_the_passages_is_that_of_the_whole(spelling, seed, num_frames, longest, block):
    log_probs = random_scores(seed, num_frames)
    passages = passages_of(log_probs, spelling, longest, block)
    assert max(len(one.log_probs) for one in passages) <= longest
    np.testing.assert_array_equal(np.concatenate([one.log_probs for one in passages]), log_probs)
    (joined,) = join_answers([(one, greedily(one, spelling)) for one in passages], spelling)
    (whole,) = decode_greedily(log_probs[None], Lengths(np.array([num_frames])), spelling)
    assert (joined.ids, joined.text) == (whole.ids, whole.text)
    assert [(one.text, one.start, one.end) for one in joined.words] == [
        (one.text, one.start, one.end) for one in whole.words
    ]
    assert joined.log_prob == pytest.approx(whole.log_prob)
    assert joined.confidence == pytest.approx(whole.confidence)


@given(blocks=st.lists(st.integers(1, 40), min_size=1, max_size=8), seed=st.integers(0, 1000))
def test_passages_do_not_depend_on_the_blocks_that_scores_come_in(spelling, blocks, seed):
    log_probs = random_scores(seed, sum(blocks))
    cutter, found = PassageCutter(spelling, 20), []
    for block in np.split(log_probs, np.cumsum(blocks)[:-1]):
        found += cutter.push(block)
    found += cutter.finish()
    assert [one.start for one in found] == [one.start for one in passages_of(log_probs, spelling, 20, 1)]


def test_passages_are_cut_in_the_longest_pause(spelling):
    path = [A, BLANK, B, SPACE, C, BLANK, A, SPACE, BLANK, BLANK, BLANK, BLANK, B, BLANK, A, C, A, B]
    first, _ = passages_of(certain(path), spelling, 16)
    assert len(first.log_probs) in range(8, 13)


def test_the_best_answers_of_a_search_are_the_best_of_all_that_its_passages_allow(spelling):
    log_probs = random_scores(3, 60)
    passages = passages_of(log_probs, spelling, 20)
    answers = [
        decode_by_search(one.log_probs[None], Lengths(np.array([len(one.log_probs)])), spelling, num_best=4)[0]
        for one in passages
    ]
    found = join_answers(list(zip(passages, answers, strict=True)), spelling, num_best=4)
    assert len({one.text for one in found}) == 4
    assert found[0].score == pytest.approx(sum(some[0].score for some in answers))
    nearest = min(some[0].score - some[1].score for some in answers)
    assert found[1].score == pytest.approx(found[0].score - nearest)


def test_behind_a_gap_another_word_begins(spelling):
    cutter = PassageCutter(spelling, 20)
    passages = [*cutter.push(certain([A, BLANK, B])), *cutter.finish()]
    cutter.begin(10)
    passages += [*cutter.push(certain([C])), *cutter.finish()]
    (joined,) = join_answers([(one, greedily(one, spelling)) for one in passages], spelling)
    assert joined.text == "ab c"
    assert [(one.text, one.start, one.end) for one in joined.words] == [("ab", 0, 3), ("c", 10, 11)]


def test_a_word_that_goes_on_from_passage_to_passage_is_one(spelling):
    passages = passages_of(certain([A, BLANK, B, BLANK, C, BLANK, A, BLANK]), spelling, 4)
    (joined,) = join_answers([(one, greedily(one, spelling)) for one in passages], spelling)
    assert len(passages) > 1
    assert [one.text for one in joined.words] == ["abca"]


def test_where_words_are_known_each_passage_ends_with_one(spelling):
    log_probs = certain([A, BLANK, B, BLANK, A, BLANK, B, BLANK])
    guide = build_guide(spelling, lexicon=["ab"])
    cutter = PassageCutter(spelling, 4, ends_words=True)
    passages = [*cutter.push(log_probs), *cutter.finish()]
    lengths = [Lengths(np.array([len(one.log_probs)])) for one in passages]
    answers = [
        decode_by_search(one.log_probs[None], length, spelling, guide=guide)[0]
        for one, length in zip(passages, lengths, strict=True)
    ]
    (joined,) = join_answers(list(zip(passages, answers, strict=True)), spelling)
    assert len(passages) > 1
    assert {word.text for word in joined.words} == {"ab"}


def test_nothing_heard_is_nothing_said(spelling):
    (answer,) = join_answers([], spelling)
    assert (answer.text, answer.words, answer.confidence) == ("", (), 1.0)
