"""Estimates n-grams from text: interpolated modified Kneser-Ney (Chen and Goodman, 1998), as exact as its sums.

tables = estimate_ngrams((line.split() for line in lines), NgramConfig(order=3))
write_arpa(tables, "words.arpa.gz")
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError, TextError
from sonant.decoding.ngram.counts import RESERVED, NgramCounts, OrderCounts, count_ngrams
from sonant.decoding.ngram.model import BEGIN, UNSEEN_LOG10
from sonant.decoding.ngram.tables import NgramTable, NgramTables

_USUAL_DISCOUNTS = (0.5, 1.0, 1.5)  # where a text is too small or too regular to tell its own


@dataclass(frozen=True, kw_only=True)
class NgramConfig:
    """How far a history reaches, and what is too rare to be kept."""

    order: Annotated[int, Within(1, 10)] = 3
    min_counts: tuple[int, ...] = (1,)  # by order, the last one for all longer; rarer n-grams are dropped
    min_word_count: Annotated[int, Within(1, 1e9)] = 1  # a rarer word is counted as unknown

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.min_counts or self.min_counts[0] != 1 or any(a > b for a, b in pairwise(self.min_counts)):
            problem = f"{self.min_counts} was found, but it must begin with 1 and never fall."
            raise ConfigError("min_counts", problem, "Write e.g. (1, 1, 2); rare words have min_word_count.")
        if len(self.min_counts) > self.order:
            problem = f"it has {len(self.min_counts)} entries for {self.order} orders."
            raise ConfigError("min_counts", problem, "Leave out what is beyond the order.")

    def min_count(self, order: int) -> int:
        return self.min_counts[min(order, len(self.min_counts)) - 1]


def estimate_ngrams(sentences: Iterable[Sequence[str]], config: NgramConfig | None = None) -> NgramTables:
    """The same sentences in any order give the same model."""
    config = config or NgramConfig()
    counted = count_ngrams(sentences, config.order, config.min_word_count)
    if not counted.orders[0].counts.any():
        raise TextError("texts", "there is no sentence to count.", "Give more text.")
    probs, backoffs = _probabilities(counted)
    kept = [counts.counts >= config.min_count(order) for order, counts in enumerate(counted.orders, 1)]
    kept[0][:] = True
    if config.min_counts[-1] > 1:
        backoffs = _backoffs_of_kept(counted, probs, kept)
    return _tables(counted, probs, backoffs, kept)


def _probabilities(counted: NgramCounts) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Interpolated probabilities of all n-grams by order, and the weight that each leaves to shorter histories."""
    num_words = len(counted.words)
    is_word = np.arange(num_words) != RESERVED.index(BEGIN)  # no sentence begins twice
    lower = is_word / is_word.sum()
    probs: list[np.ndarray] = []
    backoffs: list[np.ndarray] = []
    for order, counts in enumerate(counted.orders, 1):
        weights = adjusted_counts(counted.orders, order)
        discounts = np.append(0.0, discounts_of(weights))[np.minimum(weights, 3)]
        num_histories = len(probs[-1]) if probs else 1
        sums = np.bincount(counts.histories, weights, num_histories)
        left = np.bincount(counts.histories, discounts, num_histories)
        left = np.divide(left, sums, out=np.ones(num_histories), where=sums > 0)
        below = probs[-1][counts.suffixes] if probs else lower
        probs.append((weights - discounts) / sums[counts.histories] + left[counts.histories] * below)
        if order > 1:
            backoffs.append(left)
    return probs, [*backoffs, np.ones(len(probs[-1]))]


def adjusted_counts(orders: Sequence[OrderCounts], order: int) -> np.ndarray:
    """How many words stand before an n-gram; nothing can before a sentence, and nothing is asked of the longest."""
    counts = orders[order - 1]
    adjusted = counts.counts.copy()
    if order < len(orders):
        adjusted = np.bincount(orders[order].suffixes, minlength=len(adjusted))
        adjusted[counts.begins] = counts.counts[counts.begins]
    if order == 1:
        adjusted[RESERVED.index(BEGIN)] = 0
    return adjusted


def discounts_of(adjusted: np.ndarray) -> tuple[float, float, float]:
    """What is taken from n-grams seen once, twice, and more often."""
    n1, n2, n3, n4 = (int((adjusted == times).sum()) for times in (1, 2, 3, 4))
    if not all((n1, n2, n3, n4)):
        return _USUAL_DISCOUNTS
    share = n1 / (n1 + 2 * n2)
    found = 1 - 2 * share * n2 / n1, 2 - 3 * share * n3 / n2, 3 - 4 * share * n4 / n3
    is_sound = all(0 <= discount <= times for times, discount in enumerate(found, 1))
    return found if is_sound else _USUAL_DISCOUNTS


def _backoffs_of_kept(counted: NgramCounts, probs: list[np.ndarray], kept: list[np.ndarray]) -> list[np.ndarray]:
    """The weight with which what is left of each history sums to one, when rare n-grams are gone."""
    backoffs = []
    for counts, above, below, is_kept in zip(counted.orders[1:], probs[1:], probs, kept[1:], strict=False):
        histories = counts.histories[is_kept]
        taken = np.bincount(histories, above[is_kept], len(below))
        covered = np.bincount(histories, below[counts.suffixes[is_kept]], len(below))
        left, uncovered = np.maximum(1 - taken, 1e-12), np.maximum(1 - covered, 1e-12)
        backoffs.append(np.where(taken > 0, left / uncovered, 1.0))
    return [*backoffs, np.ones(len(probs[-1]))]


def _tables(
    counted: NgramCounts, probs: list[np.ndarray], backoffs: list[np.ndarray], kept: list[np.ndarray]
) -> NgramTables:
    orders, words = [], np.zeros((1, 0), np.int32)
    for counts, some_probs, some_backoffs, is_kept in zip(counted.orders, probs, backoffs, kept, strict=True):
        words = np.concatenate([words[counts.histories], counts.last_words[:, None].astype(np.int32)], axis=1)
        with np.errstate(divide="ignore"):
            log_probs = np.maximum(np.log10(some_probs[is_kept]), UNSEEN_LOG10)
            log_backoffs = np.maximum(np.log10(some_backoffs[is_kept]), UNSEEN_LOG10)
        orders.append(NgramTable(words[is_kept], log_probs, log_backoffs))
    return NgramTables(counted.words, tuple(orders))
