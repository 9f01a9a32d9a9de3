"""Estimated probabilities are those of modified Kneser-Ney smoothing, and sum to one behind every history."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import ConfigError, TextError
from sonant.decoding.ngram.estimation import NgramConfig, discounts_of, estimate_ngrams
from sonant.decoding.ngram.model import build_model

texts = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=12)


class KneserNey:
    """Chen and Goodman's equations, one n-gram at a time."""

    def __init__(self, sentences, order):
        self.order = order
        padded = [("<s>", *sentence, "</s>") for sentence in sentences]
        self.vocabulary = {"<unk>", "</s>", *(word for sentence in sentences for word in sentence)}
        raw = [Counter() for _ in range(order + 1)]
        for sentence in padded:
            for n in range(1, order + 1):
                raw[n].update(sentence[i : i + n] for i in range(len(sentence) - n + 1))
        self.counts = [Counter() for _ in range(order + 1)]
        self.counts[order] = raw[order]
        for n in range(1, order):
            before = defaultdict(set)
            for ngram in raw[n + 1]:
                before[ngram[1:]].add(ngram[0])
            self.counts[n] = Counter({g: c if g[0] == "<s>" else len(before[g]) for g, c in raw[n].items()})
        self.counts[1][("<s>",)] = 0
        self.discounts = [(0, *discounts_of(np.array(list(counts.values())))) for counts in self.counts]

    def probability(self, ngram):
        if not ngram:
            return 1 / len(self.vocabulary)
        n, history = len(ngram), ngram[:-1]
        following = {g: c for g, c in self.counts[n].items() if g[:-1] == history and c}
        total = sum(following.values())
        if not total:
            return self.probability(ngram[1:])
        taken = {g: self.discounts[n][min(c, 3)] for g, c in following.items()}
        left = sum(taken.values()) / total
        return (following.get(ngram, 0) - taken.get(ngram, 0)) / total + left * self.probability(ngram[1:])


def scores(model, history, words):
    """Probabilities of words behind a history of words."""
    state = np.array([model.start])
    for word in history:
        _, state = model.score(state, np.array(model.ids_of([word])))
    return np.exp(model.score(np.repeat(state, len(words)), np.array(model.ids_of(words)))[0])


@settings(max_examples=30, deadline=None)
@given(sentences=texts, order=st.integers(1, 4))
def test_probabilities_are_those_of_the_equations(sentences, order):
    model, truth = build_model(estimate_ngrams(sentences, NgramConfig(order=order))), KneserNey(sentences, order)
    words = sorted(truth.vocabulary)
    for history in [(), *product("ab", repeat=1), *product("abz", repeat=2)]:
        behind = ("<s>", *("<unk>" if word not in truth.vocabulary else word for word in history))
        behind = behind[max(0, len(behind) - order + 1) :]
        expected = [truth.probability((*behind, word)) for word in words]
        np.testing.assert_allclose(scores(model, history, words), expected, rtol=1e-5)


@settings(max_examples=50, deadline=None)
@given(sentences=texts, order=st.integers(1, 4), least=st.integers(1, 3), rare=st.integers(1, 2), data=st.data())
def test_probabilities_sum_to_one_behind_every_history(sentences, order, least, rare, data):
    min_counts = (1, least) if order > 1 else (1,)
    model = build_model(
        estimate_ngrams(sentences, NgramConfig(order=order, min_counts=min_counts, min_word_count=rare))
    )
    words = [word for word in model.words if word != "<s>"]
    history = data.draw(st.lists(st.sampled_from("abcdz"), max_size=4))
    assert scores(model, history, words).sum() == pytest.approx(1, abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(data=st.data(), sentences=texts)
def test_the_order_of_sentences_does_not_matter(data, sentences):
    shuffled = data.draw(st.permutations(sentences))
    first, second = estimate_ngrams(sentences), estimate_ngrams(iter(shuffled))
    assert first.words == second.words
    for a, b in zip(first.orders, second.orders, strict=True):
        np.testing.assert_array_equal(a.words, b.words)
        np.testing.assert_allclose(a.log10_probs, b.log10_probs)


def test_discounts_follow_the_counts_of_counts():
    adjusted = np.repeat([1, 2, 3, 4, 9], [8, 4, 2, 1, 3])
    share = 8 / (8 + 2 * 4)
    expected = 1 - 2 * share * 4 / 8, 2 - 3 * share * 2 / 4, 3 - 4 * share * 1 / 2
    assert discounts_of(adjusted) == pytest.approx(expected)
    assert discounts_of(np.array([1, 1, 5])) == (0.5, 1.0, 1.5)


def test_rare_ngrams_are_dropped_and_single_words_are_kept():
    sentences = [["a", "b"], ["a", "b"], ["c", "d"]]
    tables = estimate_ngrams(sentences, NgramConfig(order=2, min_counts=(1, 2)))
    kept = {" ".join(tables.words[word] for word in row) for row in tables.orders[1].words.tolist()}
    assert kept == {"<s> a", "a b", "b </s>"}
    assert {"c", "d"} <= set(tables.words)


def test_rare_words_are_counted_as_unknown():
    tables = estimate_ngrams([["a", "a", "b"]], NgramConfig(min_word_count=2))
    assert "b" not in tables.words
    assert build_model(tables).score_sentences([["b"]])[0] > -10


def test_marks_spelled_in_a_text_end_no_sentence():
    marked, plain = estimate_ngrams([["a", "</s>", "b"]]), estimate_ngrams([["a", "<unk>", "b"]])
    assert marked.words == plain.words
    np.testing.assert_array_equal(marked.orders[2].words, plain.orders[2].words)


def test_a_text_without_a_sentence_is_refused():
    with pytest.raises(TextError, match="no sentence"):
        estimate_ngrams([])


@pytest.mark.parametrize("min_counts", [(2,), (), (1, 3, 2), (1, 1, 1, 1)])
def test_thresholds_that_cannot_hold_are_refused(min_counts):
    with pytest.raises(ConfigError, match="min_counts"):
        NgramConfig(order=3, min_counts=min_counts)
