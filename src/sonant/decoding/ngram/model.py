"""An n-gram language model in arrays: many (state, word) pairs are scored in one go, backing off exactly.

Shapes: M n-grams of all orders, the empty one first, then the words; N pairs asked for.
A state is the number of the n-gram that is the longest known history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sonant.decoding.ngram.integer_table import IntegerTable, build_table
from sonant.decoding.ngram.tables import NgramTables

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
ROOT = 0  # the empty history
LOG_10 = float(np.log(10.0))
UNSEEN_LOG10 = -100.0  # for <unk>, where a model has none
_LATER_SPELLINGS = {"<UNK>": UNKNOWN, "<S>": BEGIN, "</S>": END}


@dataclass(frozen=True, eq=False)
class NgramModel:
    """Natural logarithms throughout."""

    order: int
    words: tuple[str, ...]
    log_probs: np.ndarray  # (M,) float32: of the last word of each n-gram behind the others
    backoffs: np.ndarray  # (M,) float32: what leaving this history costs
    shorter: np.ndarray  # (M,) int32: the longest known n-gram that ends likewise
    states: np.ndarray  # (M,) int32: the history that each n-gram leaves behind
    continuations: IntegerTable  # history * words + word, in the order of the n-grams of two words and more

    @cached_property
    def ids(self) -> dict[str, int]:
        return {word: id for id, word in enumerate(self.words)}

    @property
    def start(self) -> int:
        """The state before the first word."""
        return int(self.states[1 + self.ids[BEGIN]]) if BEGIN in self.ids else ROOT

    @property
    def unknown_id(self) -> int:
        return self.ids[UNKNOWN]

    @property
    def end_id(self) -> int | None:
        """The word that ends a sentence; without one, ending costs nothing."""
        return self.ids.get(END)

    def ids_of(self, words: Iterable[str]) -> list[int]:
        return [self.ids.get(word, self.unknown_id) for word in words]

    def score(self, states: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities (N,) float64 of words (N,) behind states (N,), and the states behind them (N,)."""
        totals, after = np.zeros(len(words)), np.zeros(len(words), np.int64)
        left, histories, sought = np.arange(len(words)), states, words
        while left.size:
            found = self._find(histories, sought)
            is_known = found >= 0
            hits, ngrams = left[is_known], found[is_known]
            totals[hits] += self.log_probs.take(ngrams)
            after[hits] = self.states.take(ngrams)
            if hits.size == left.size:
                break
            left, histories, sought = left[~is_known], histories[~is_known], sought[~is_known]
            totals[left] += self.backoffs.take(histories)
            histories = self.shorter.take(histories)
        return totals, after

    def score_sentences(self, sentences: Sequence[Sequence[str]], *, ended: bool = True) -> np.ndarray:
        """The log-probability of each sentence (B,), with its end unless told otherwise."""
        rows = [self.ids_of(sentence) for sentence in sentences]
        if ended and self.end_id is not None:
            rows = [[*row, self.end_id] for row in rows]
        longest_first = np.argsort([-len(row) for row in rows], kind="stable")
        totals, states = np.zeros(len(rows)), np.full(len(rows), self.start, np.int64)
        for place in range(max(map(len, rows), default=0)):
            live = [i for i in longest_first.tolist() if len(rows[i]) > place]
            scores, states[live] = self.score(states[live], np.array([rows[i][place] for i in live]))
            totals[live] += scores
        return totals

    def _find(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The n-gram of each history with a word behind it, -1 where it was never seen; every word alone is known."""
        places = self.continuations.find(histories * np.int64(len(self.words)) + words)
        ngrams = np.where(places >= 0, places + (1 + len(self.words)), -1)
        return np.asarray(np.where(histories == ROOT, words + 1, ngrams))


def build_model(tables: NgramTables) -> NgramModel:
    """The same model as in tables by order, with histories that its file left out put back."""
    words = tuple(_LATER_SPELLINGS.get(word, word) for word in tables.words)
    tables = tables.closed()
    unigrams = tables.orders[0]
    log_probs, backoffs = unigrams.log10_probs.astype(np.float64), unigrams.log10_backoffs.astype(np.float64)
    if UNKNOWN not in words:
        words = (*words, UNKNOWN)
        log_probs, backoffs = np.append(log_probs, UNSEEN_LOG10), np.append(backoffs, 0.0)
    growing = _Growing(len(words), np.append(0.0, log_probs), np.append(0.0, backoffs))
    for table in tables.orders[1:]:
        growing.add(table.words, table.log10_probs, table.log10_backoffs)
    return growing.model(words)


class _Growing:
    """The arrays of a model while one order after the other is added."""

    def __init__(self, num_words: int, log10_probs: np.ndarray, log10_backoffs: np.ndarray) -> None:
        self.num_words, self.order = num_words, 1
        self.log10_probs, self.log10_backoffs = log10_probs, log10_backoffs
        self.shorter = np.zeros(len(log10_probs), np.int64)
        self.keys = np.zeros(0, np.int64)
        self.table = build_table(self.keys)

    def add(self, words: np.ndarray, log10_probs: np.ndarray, log10_backoffs: np.ndarray) -> None:
        """Takes (N, order) words whose histories are known; a probability that is NaN is that of backing off."""
        histories = self.longest(words[:, :-1])
        suffixes = self.longest(words[:, 1:])
        keys = histories * np.int64(self.num_words) + words[:, -1]
        implied = np.isnan(log10_probs)
        log10_probs = np.where(implied, self.log10_backoffs[histories] + self._backed_off(words), log10_probs)
        self.log10_probs = np.append(self.log10_probs, log10_probs)
        self.log10_backoffs = np.append(self.log10_backoffs, log10_backoffs)
        self.shorter = np.append(self.shorter, suffixes)
        self.keys = np.append(self.keys, keys)
        self.table = build_table(self.keys)
        self.order += 1

    def longest(self, words: np.ndarray) -> np.ndarray:
        """The longest known n-gram that each row (N, n) ends with."""
        ngrams = words[:, 0].astype(np.int64) + 1
        for column in range(1, words.shape[1]):
            ngrams = self._behind(ngrams, words[:, column])[0]
        return ngrams

    def _backed_off(self, words: np.ndarray) -> np.ndarray:
        """Log10 of the last word behind the history without its first word."""
        histories = self.longest(words[:, 1:-1]) if words.shape[1] > 2 else np.full(len(words), ROOT)
        ngrams, costs = self._behind(histories, words[:, -1])
        return np.asarray(costs + self.log10_probs[ngrams])

    def _behind(self, histories: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The longest known n-gram of a history with a word behind it, and the cost of backing off to it."""
        found, costs = np.full(len(words), -1, np.int64), np.zeros(len(words))
        while (left := np.flatnonzero(found < 0)).size:
            places = self.table.find(histories[left] * np.int64(self.num_words) + words[left])
            known = np.where(places >= 0, places + (1 + self.num_words), -1)
            found[left] = np.where(histories[left] == ROOT, words[left] + 1, known)
            costs[left] += np.where(found[left] < 0, self.log10_backoffs[histories[left]], 0.0)
            histories = np.where(found < 0, self.shorter[histories], histories)
        return found, costs

    def model(self, words: tuple[str, ...]) -> NgramModel:
        has_more = np.zeros(len(self.log10_probs), bool)
        has_more[self.keys // self.num_words] = True
        states = np.arange(len(has_more))
        for _ in range(self.order):  # a history with nothing behind it only costs time, unless it costs something
            is_idle = ~has_more[states] & (self.log10_backoffs[states] == 0)
            states = np.where(is_idle, self.shorter[states], states)
        return NgramModel(
            self.order,
            words,
            (self.log10_probs * LOG_10).astype(np.float32),
            (self.log10_backoffs * LOG_10).astype(np.float32),
            self.shorter.astype(np.int32),
            states.astype(np.int32),
            self.table,
        )
