"""Corpora by weight: what "once" means, and that any epoch is found without those before it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import ConfigError, UsageError
from sonant.batches.mixing import MixingConfig, Mixture

sizes = st.lists(st.integers(1, 40), min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(sizes=sizes, epoch=st.integers(0, 5))
def test_without_weights_an_epoch_is_every_utterance_once(sizes, epoch):
    selection = Mixture(sizes).epoch(epoch)
    taken = sorted(zip(selection.corpora.tolist(), selection.rows.tolist(), strict=True))
    assert taken == [(corpus, row) for corpus, size in enumerate(sizes) for row in range(size)]
    assert set(selection.passes.tolist()) == {epoch}


@settings(max_examples=100, deadline=None)
@given(sizes=sizes, draws=st.data())
def test_no_utterance_comes_again_before_all_of_its_corpus_have_come(sizes, draws):
    weights = tuple(draws.draw(st.floats(0.2, 5)) for _ in sizes)
    total = draws.draw(st.integers(60, 150))
    mixture = Mixture(sizes, MixingConfig(weights=weights, utterances_per_epoch=total))
    seen = [np.zeros(size, int) for size in sizes]
    for epoch in range(4):
        selection = mixture.epoch(epoch)
        assert len(selection.rows) == total
        for corpus, row, number in zip(selection.corpora, selection.rows, selection.passes, strict=True):
            assert seen[corpus][row] == number  # the pass is how often it came before
            seen[corpus][row] += 1
        for counts in seen:
            assert counts.max() - counts.min() <= 1


def test_an_epoch_takes_of_each_corpus_in_proportion_to_its_weight():
    mixture = Mixture([1000, 50], MixingConfig(weights=(3, 1), utterances_per_epoch=400))
    assert np.bincount(mixture.epoch(7).corpora).tolist() == [300, 100]


def test_an_utterance_that_comes_twice_in_an_epoch_does_so_in_two_passes():
    selection = Mixture([5], MixingConfig(utterances_per_epoch=10)).epoch(3)
    assert sorted(selection.passes.tolist()) == [6] * 5 + [7] * 5


def test_a_part_of_a_large_corpus_can_be_an_epoch():
    mixture = Mixture([100], MixingConfig(utterances_per_epoch=30))
    first = [mixture.epoch(epoch).rows for epoch in range(4)]
    assert len(np.unique(np.concatenate(first[:3]))) == 90
    assert set(np.concatenate([first[0], first[1], first[2], first[3][:10]])) == set(range(100))


def test_the_order_within_a_pass_is_drawn_by_the_seed():
    config = MixingConfig(utterances_per_epoch=30)
    one, same, other = (Mixture([100], config, seed=seed).epoch(0).rows for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_late_epoch_is_found_as_fast_as_an_early_one():
    selection = Mixture([10, 7], MixingConfig(weights=(1, 1))).epoch(10**9)
    assert len(selection.rows) == 17


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"weights": (1.0, 0.0)}, "every weight must be above 0"),
        ({"weights": (1.0,)}, "1 weights were found for 2 corpora"),
        ({"weights": (1.0, 1e-9)}, "corpus 2 would give no utterance to an epoch of 15"),
        ({"utterances_per_epoch": 0}, "1 or more is required"),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(config, problem):
    with pytest.raises(ConfigError, match=problem):
        Mixture([10, 5], MixingConfig(**config))


@pytest.mark.parametrize("sizes", [[], [10, 0]])
def test_a_corpus_without_utterances_is_refused(sizes):
    with pytest.raises(UsageError, match="without utterances"):
        Mixture(sizes)
