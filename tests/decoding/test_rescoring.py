"""A judge of whole texts changes the order of answers as its weight says, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from sonant.base.lengths import Lengths
from sonant.decoding.decoders import decode_by_search
from sonant.decoding.prefix_beam import BeamConfig
from sonant.decoding.rescoring import RescoringConfig, rescore, tune_rescoring


@pytest.fixture
def answers(spelling, log_softmax):
    log_probs = log_softmax(np.random.default_rng(0).normal(0, 1.5, (6, 7, 5)))
    return decode_by_search(log_probs, Lengths(np.full(6, 7)), spelling, BeamConfig(width=20), num_best=8)


def prefers_a(texts):
    """A judge that likes the letter a."""
    return [3.0 * text.count("a") - 2.0 * len(text) for text in texts]


def test_without_weight_the_order_stays(answers):
    assert rescore(answers, prefers_a, RescoringConfig(weight=0)) == answers


def test_scores_are_those_of_the_search_and_of_the_judge(answers):
    config = RescoringConfig(weight=0.5, word_bonus=0.25)
    for before, after in zip(answers, rescore(answers, prefers_a, config), strict=True):
        assert {one.text for one in before} == {one.text for one in after}
        scores = {one.text: one.score for one in before}
        for one in after:
            expected = scores[one.text] + 0.5 * prefers_a([one.text])[0] + 0.25 * len(one.words)
            assert one.score == pytest.approx(expected)
        assert [one.score for one in after] == sorted((one.score for one in after), reverse=True)


def test_a_heavy_judge_has_the_last_word(answers):
    for some in rescore(answers, prefers_a, RescoringConfig(weight=100)):
        assert prefers_a([some[0].text])[0] == max(prefers_a([one.text for one in some]))


def test_each_text_is_read_once(answers):
    read = []
    rescore([*answers, *answers], lambda texts: read.extend(texts) or [0.0] * len(texts))
    assert len(read) == len(set(read)) == len({one.text for some in answers for one in some})


def test_the_tuned_weight_makes_the_fewest_errors(answers):
    wanted = [max(some, key=lambda one: prefers_a([one.text])[0]).text for some in answers]
    config = tune_rescoring(answers, prefers_a, wanted, weights=(0.0, 0.5, 50.0), word_bonuses=(0.0,))
    assert config.weight == 50.0
    already = [some[0].text for some in answers]
    assert tune_rescoring(answers, prefers_a, already) == RescoringConfig(weight=0.0, word_bonus=0.0)


def test_an_utterance_without_answers_is_wrong_in_every_word(answers):
    config = tune_rescoring([[]], prefers_a, ["a b"])
    assert config == RescoringConfig(weight=0.0, word_bonus=0.0)
    assert rescore([[]], prefers_a) == [[]]
