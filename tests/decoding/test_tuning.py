"""A decoding is chosen by the errors that it makes, and never for the worse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sonant.base.lengths import Lengths
from sonant.decoding.decoder import GreedyConfig, SearchConfig
from sonant.decoding.frames import FrameConfig
from sonant.decoding.guide import GuideConfig
from sonant.decoding.ngram.estimation import NgramConfig, estimate_ngrams
from sonant.decoding.ngram.model import build_model
from sonant.decoding.prefix_beam import BeamConfig
from sonant.decoding.tuning import Heard, Tuner, tune
from sonant.metrics.edits import word_edits

WORDS = ("cab", "abc", "bac", "cc", "a", "bab")
GIVEN = SearchConfig(beam=BeamConfig(width=6), ngram="words.ngram")


def said(rng) -> str:
    """Words that mostly follow the one before in the list."""
    place, words = int(rng.integers(len(WORDS))), []
    for _ in range(int(rng.integers(3, 7))):
        words.append(WORDS[place])
        place = (place + 1) % len(WORDS) if rng.random() < 0.8 else int(rng.integers(len(WORDS)))
    return " ".join(words)


def heard_as(texts, rng, log_softmax, noise: float = 2.2) -> Heard:
    """Scores of a recogniser that is often unsure; symbols: <pad> | a b c."""
    rows = []
    for text in texts:
        frames = []
        for letter in text:
            row = rng.normal(0, noise, 5)
            row["|abc".index(letter.replace(" ", "|")) + 1] += 4.0
            blank = rng.normal(0, noise, 5)
            blank[0] += 6.0
            frames += [row, blank]
        rows.append(log_softmax(np.array(frames)))
    lengths = np.array([len(row) for row in rows])
    padded = np.zeros((len(rows), lengths.max(), 5))
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return Heard(padded, Lengths(lengths), texts)


@pytest.fixture(scope="module")
def ngram():
    rng = np.random.default_rng(5)
    return build_model(estimate_ngrams((said(rng).split() for _ in range(400)), NgramConfig(order=2)))


@pytest.fixture(scope="module")
def heard(log_softmax) -> list[Heard]:
    rng = np.random.default_rng(6)
    return [heard_as([said(rng) for _ in range(10)], rng, log_softmax) for _ in range(2)]


def errors(tuner: Tuner, config, heard) -> int:
    found = 0
    for part in heard:
        answers = tuner.decoder(config)(part.log_probs, part.lengths)
        found += sum(
            word_edits(reference, some[0].text).errors for reference, some in zip(part.references, answers, strict=True)
        )
    return found


@pytest.fixture(scope="module")
def tuned(heard, spelling, ngram):
    return tune(heard, Tuner(spelling, ngram), GIVEN)


def test_what_is_chosen_makes_no_more_errors_than_anything_that_was_tried(tuned, heard, spelling, ngram):
    tuner = Tuner(spelling, ngram)
    found = errors(tuner, tuned.config, heard)
    assert found == tuned.best.word_errors == min(trial.word_errors for trial in tuned.trials)
    tried = [trial.config for trial in tuned.trials]
    assert GreedyConfig() in tried
    assert GIVEN in tried
    assert [trial.word_errors for trial in tuned.trials] == [errors(tuner, config, heard) for config in tried]


def test_n_grams_that_know_the_texts_are_chosen_and_help(tuned):
    assert isinstance(tuned.config, SearchConfig)
    assert tuned.config.guide.ngram_weight > 0
    assert tuned.best.word_errors < 0.8 * tuned.trials[0].word_errors


def test_n_grams_of_other_texts_are_left_out(heard, spelling):
    wrong = build_model(estimate_ngrams([["ccc", "ccc"], ["aaa"]] * 20, NgramConfig(order=2)))
    found = tune(heard, Tuner(spelling, wrong), GIVEN)
    assert found.best.word_errors <= found.trials[0].word_errors


def test_nothing_is_tried_twice(tuned):
    assert len({repr(trial.config) for trial in tuned.trials}) == len(tuned.trials)


def test_the_same_utterances_give_the_same_choice_however_they_are_put(tuned, heard, spelling, ngram):
    others = []
    for part in reversed(heard):
        for rows in ([4, 9, 1], [0, 2, 3, 5, 6, 7, 8]):
            lengths = Lengths(part.lengths.values[rows])
            texts = [part.references[row] for row in rows]
            others.append(Heard(part.log_probs[rows, : lengths.longest], lengths, texts))
    assert tune(others, Tuner(spelling, ngram), GIVEN) == tuned


@pytest.mark.parametrize(("tokens", "window"), [(4.0, 6.0), (3.0, 5.0), (6.0, 9.0)])
def test_what_is_pruned_already_is_never_made_dearer_by_choosing_again(heard, spelling, ngram, tokens, window):
    given = replace(GIVEN, beam=BeamConfig(width=6, window=window, frames=FrameConfig(token_window=tokens)))
    once = tune(heard, Tuner(spelling, ngram), given).config
    again = tune(heard, Tuner(spelling, ngram), once).config
    for before, after in ((given, once), (once, again)):
        assert after.beam.window <= before.beam.window
        assert after.beam.frames.token_window <= before.beam.frames.token_window


def test_n_grams_without_weight_change_nothing(heard, spelling, ngram):
    tuner = Tuner(spelling, ngram)
    idle = replace(GIVEN, guide=GuideConfig(ngram_weight=0.0, word_bonus=0.0, unknown_penalty=0.0))
    for part in heard:
        assert tuner.texts(idle, part) == tuner.texts(SearchConfig(beam=GIVEN.beam), part)


def test_a_judge_that_knows_what_was_said_is_listened_to(heard, spelling):
    truth = {reference for part in heard for reference in part.references}
    config = SearchConfig(rescorer="lm", num_rescored=10)
    found = tune(heard, Tuner(spelling, judge=lambda texts: [40.0 * (text in truth) for text in texts]), config)
    assert isinstance(found.config, SearchConfig)
    assert found.config.rescorer == "lm"
    assert found.best.word_errors < min(trial.word_errors for trial in found.trials if trial.stage != "rescoring")


def test_a_judge_without_an_opinion_is_left_out(heard, spelling):
    found = tune(heard, Tuner(spelling, judge=lambda texts: [0.0] * len(texts)), SearchConfig(rescorer="lm"))
    assert isinstance(found.config, GreedyConfig) or not found.config.rescorer


def test_hot_words_stay_though_nobody_says_them(heard, spelling, ngram):
    config = replace(GIVEN, hot_words={"ccc": 2.0})
    found = tune(heard, Tuner(spelling, ngram), config)
    assert all(trial.config.hot_words == {"ccc": 2.0} for trial in found.trials)


def test_the_cheapest_pruning_that_makes_no_more_errors_is_taken(tuned):
    assert isinstance(tuned.config, SearchConfig)
    wide = replace(tuned.config, beam=GIVEN.beam)
    assert any(trial.config == wide and trial.word_errors >= tuned.best.word_errors for trial in tuned.trials)
    assert tuned.config.beam.window < GIVEN.beam.window
