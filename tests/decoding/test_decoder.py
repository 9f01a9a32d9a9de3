"""One config says how answers are found; what it says is all that counts."""

from __future__ import annotations

import numpy as np
import pytest

from sonant.base import config as configs
from sonant.base.errors import ConfigError, UsageError
from sonant.base.lengths import Lengths
from sonant.decoding.decoder import Decoder, GreedyConfig, SearchConfig, decoding_of, in_words
from sonant.decoding.decoders import decode_by_search, decode_greedily
from sonant.decoding.guide import GuideConfig
from sonant.decoding.prefix_beam import BeamConfig
from sonant.decoding.rescoring import RescoringConfig, rescore

LENGTHS = Lengths(np.array([9, 7, 0]))
FULL = SearchConfig(
    beam=BeamConfig(width=7),
    ngram="words.ngram",
    hot_words={"abba": 3.0},
    guide=GuideConfig(ngram_weight=0.7),
    rescorer="lm",
    rescoring=RescoringConfig(weight=0.2),
)


@pytest.fixture
def log_probs(log_softmax):
    return log_softmax(np.random.default_rng(3).normal(0, 1.5, (3, 9, 5)))


def likes_c(texts):
    return [2.0 * text.count("c") for text in texts]


@pytest.mark.parametrize("config", [GreedyConfig(), SearchConfig(), FULL])
def test_a_decoding_is_read_as_it_was_written(config):
    assert decoding_of(configs.to_dict(config), "bundle.json") == config
    assert in_words(config)


def test_a_bundle_that_says_nothing_decodes_greedily():
    assert decoding_of({}, "bundle.json") == GreedyConfig()


def test_each_kind_is_what_it_is_called(log_probs, spelling):
    greedy = [[one] for one in decode_greedily(log_probs, LENGTHS, spelling)]
    assert Decoder(spelling)(log_probs, LENGTHS) == greedy
    searched = decode_by_search(log_probs, LENGTHS, spelling, BeamConfig(), None, 3)
    assert Decoder(spelling, SearchConfig())(log_probs, LENGTHS, 3) == searched


def test_a_judge_chooses_among_as_many_answers_as_the_config_says(log_probs, spelling):
    config = SearchConfig(rescorer="lm", num_rescored=4, rescoring=RescoringConfig(weight=50.0))
    searched = decode_by_search(log_probs, LENGTHS, spelling, BeamConfig(), None, 4)
    expected = [some[:2] for some in rescore(searched, likes_c, config.rescoring)]
    found = Decoder(spelling, config, judge=likes_c)(log_probs, LENGTHS, 2)
    assert found == expected
    assert found[0] != searched[0][:2]


def test_one_answer_is_all_that_greed_has(log_probs, spelling):
    with pytest.raises(UsageError, match="Search with a beam"):
        Decoder(spelling)(log_probs, LENGTHS, 2)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"guide": GuideConfig(word_bonus=2.0)}, "none are known"),
        ({"rescoring": RescoringConfig(weight=0.1)}, "nothing that rescores"),
        ({"num_rescored": 1}, "between 2 and"),
    ],
)
def test_a_setting_without_effect_is_refused(settings, told):
    with pytest.raises(ConfigError, match=told):
        SearchConfig(**settings)


def test_a_decoding_that_is_not_known_is_told_with_its_place():
    with pytest.raises(ConfigError, match=r"bundle.json.*Did you mean 'search'"):
        decoding_of({"kind": "serch"}, "bundle.json")
