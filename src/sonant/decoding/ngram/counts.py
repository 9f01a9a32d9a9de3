"""N-grams of a text, counted: every order refers to the one before it, so that only pairs are ever sorted.

Shapes: T words of the text with the ends of its sentences, M distinct n-grams of one order.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sonant.decoding.ngram.model import BEGIN, END, UNKNOWN

RESERVED = (UNKNOWN, BEGIN, END)


@dataclass(frozen=True, eq=False)
class OrderCounts:
    """The n-grams of one order; the words themselves follow from the histories."""

    histories: np.ndarray  # (M,): the n-gram of the order before that stands in front of the last word
    last_words: np.ndarray  # (M,)
    suffixes: np.ndarray  # (M,): the n-gram of the order before without the first word
    counts: np.ndarray  # (M,)
    begins: np.ndarray  # (M,) booleans: the first word is the begin of a sentence


@dataclass(frozen=True, eq=False)
class NgramCounts:
    words: tuple[str, ...]
    orders: tuple[OrderCounts, ...]


def count_ngrams(sentences: Iterable[Sequence[str]], order: int, min_word_count: int = 1) -> NgramCounts:
    """Reads the sentences once and keeps four bytes a word of them."""
    words, text = _frequent(*_as_ids(sentences), min_word_count)
    ends = np.flatnonzero(text == RESERVED.index(END))
    sentence_end = ends[np.searchsorted(ends, np.arange(len(text)))] if len(ends) else np.zeros(0, np.int64)
    return NgramCounts(words, tuple(_orders(text, sentence_end, len(words), order)))


def _as_ids(sentences: Iterable[Sequence[str]]) -> tuple[list[str], np.ndarray]:
    ids = {word: id for id, word in enumerate(RESERVED)}
    text = array("i")
    begin, end = RESERVED.index(BEGIN), RESERVED.index(END)
    for sentence in sentences:
        row = [ids.setdefault(word, len(ids)) for word in sentence]
        # A text that spells a mark does not thereby end a sentence.
        text.extend([begin, *[0 if id in (begin, end) else id for id in row], end])
    return list(ids), np.frombuffer(text, np.int32) if len(text) else np.zeros(0, np.int32)


def _frequent(words: list[str], text: np.ndarray, min_word_count: int) -> tuple[tuple[str, ...], np.ndarray]:
    """Words in order of frequency, then of spelling, whatever the order of the text; rare ones are unknown."""
    counts = np.bincount(text, minlength=len(words))
    seen = Counter({word: int(count) for word, count in zip(words, counts, strict=True)})
    kept = [word for word in words[len(RESERVED) :] if seen[word] >= min_word_count]
    kept = [*RESERVED, *sorted(kept, key=lambda word: (-seen[word], word))]
    places = {word: id for id, word in enumerate(kept)}
    return tuple(kept), np.array([places.get(word, 0) for word in words], np.int32)[text]


def _orders(text: np.ndarray, sentence_end: np.ndarray, num_words: int, order: int) -> Iterable[OrderCounts]:
    starts = np.arange(len(text))
    ngrams = text.astype(np.int64)  # (T,): which n-gram starts at each place
    begins = np.arange(num_words) == RESERVED.index(BEGIN)
    nothing = np.zeros(num_words, np.int64)
    yield OrderCounts(nothing, np.arange(num_words), nothing, np.bincount(text, minlength=num_words), begins)
    for length in range(2, order + 1):
        starts = starts[starts + length - 1 <= sentence_end[starts]]
        keys = ngrams[starts] * num_words + text[starts + length - 1]
        distinct, first, which, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        histories, last_words = np.divmod(distinct, num_words)
        begins = begins[histories]
        yield OrderCounts(histories, last_words, ngrams[starts[first] + 1], counts, begins)
        following = np.full(len(text), -1, np.int64)
        following[starts] = which
        ngrams = following
