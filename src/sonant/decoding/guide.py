"""What a search knows of words: an n-gram model, hot words and a lexicon, read off one tree of letters.

Shapes: N beams, V tokens, W words.
A word is told by its letters; its score comes when it ends, and what it may at best come to is counted before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import TextError
from sonant.decoding.ngram.model import BEGIN, END, UNKNOWN, NgramModel
from sonant.decoding.spelling import NO_LETTER, Spelling
from sonant.decoding.word_trie import OFF, ROOT, WordTrie, build_trie


@dataclass(frozen=True, kw_only=True)
class GuideConfig:
    """Weights beside the log-probabilities of the recogniser, in nats."""

    ngram_weight: Annotated[float, Within(0, 100)] = 0.5
    word_bonus: Annotated[float, Within(-100, 100)] = 1.5  # for each word: n-grams prefer few
    unknown_penalty: Annotated[float, Within(0, 1000)] = 5.0  # for a word that the n-grams do not know

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, eq=False)
class Guide:
    """Two nodes and a state of the n-grams are all that a beam remembers of its words."""

    begins_word: np.ndarray  # (V,) booleans
    letters: np.ndarray  # (V, longest): what each token adds to its word
    trie: WordTrie
    values: np.ndarray  # (nodes,): the score of the best word that an unfinished one may become
    words: np.ndarray  # (nodes,): the word that ends there; -1: an unknown one
    ngram_ids: np.ndarray  # (W + 1,) the n-grams' number of each word, the unknown one last
    bonuses: np.ndarray  # (W + 1,)
    ngram: NgramModel | None
    ngram_weight: float

    @property
    def start(self) -> int:
        return self.ngram.start if self.ngram else 0

    def step(self, nodes: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The nodes (N,) after tokens (N,), which begin a word or go on with the one at hand."""
        started = np.where(self.begins_word.take(tokens), ROOT, nodes)
        return self.trie.walk(started, self.letters.take(tokens, axis=0))

    def close(self, nodes: np.ndarray, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What it scores (N,) to end the word at each node, and the states (N,) behind it; no word costs nothing."""
        is_word = nodes != ROOT
        words = self.words.take(nodes)
        scores = np.where(is_word, self.bonuses.take(words), 0.0)
        if self.ngram is None:
            return scores, states
        log_probs, after = self.ngram.score(states, self.ngram_ids.take(words))
        return scores + np.where(is_word, self.ngram_weight * log_probs, 0.0), np.where(is_word, after, states)

    def end(self, states: np.ndarray) -> np.ndarray:
        """What it scores (N,) to end the sentence."""
        if self.ngram is None or self.ngram.end_id is None:
            return np.zeros(len(states))
        return self.ngram_weight * self.ngram.score(states, np.full(len(states), self.ngram.end_id))[0]


def build_guide(
    spelling: Spelling,
    config: GuideConfig | None = None,
    *,
    ngram: NgramModel | None = None,
    hot_words: Mapping[str, float] | None = None,
    lexicon: Sequence[str] | None = None,
) -> Guide:
    """Of `lexicon`, when given, are all words of an answer, hot ones added; hot words score their number more."""
    config = config or GuideConfig()
    hot = {word: bonus for text, bonus in (hot_words or {}).items() for word in _words_of(text, spelling)}
    listed = list(dict.fromkeys([*(lexicon or ()), *hot]))
    words = list(ngram.words) if ngram else []
    words += [word for word in listed if not ngram or word not in ngram.ids]
    spelled = spelling.spell(words)
    _check_written(listed, spelling)
    unknown_id = ngram.unknown_id if ngram else 0
    ngram_ids = np.array([ngram.ids.get(word, unknown_id) if ngram else 0 for word in words] + [unknown_id])
    log_probs = ngram.log_probs[1 + ngram_ids].astype(np.float64) if ngram else np.zeros(len(ngram_ids))
    spelled[[place for place, word in enumerate(words) if word in (BEGIN, END, UNKNOWN)]] = NO_LETTER
    if lexicon is not None:
        spelled[[place for place, word in enumerate(words) if word not in set(listed)]] = NO_LETTER
    likeliest_first = np.argsort(-log_probs[:-1], kind="stable")
    trie = build_trie(spelled[likeliest_first], spelling.num_letters)
    ends = np.where(trie.words >= 0, likeliest_first[trie.words] if len(words) else -1, -1)
    bonuses = np.full(len(words) + 1, config.word_bonus)
    bonuses[-1] = -np.inf if lexicon is not None else config.word_bonus - (config.unknown_penalty if ngram else 0.0)
    values = _values(trie, ends, config.ngram_weight * log_probs + bonuses)
    for row, bonus in zip(spelling.spell(list(hot)), hot.values(), strict=True):
        bonuses[_warm(trie, values, ends, row, bonus)] += bonus
    return Guide(
        spelling.begins_word,
        spelling.letters,
        trie,
        values,
        ends,
        ngram_ids,
        bonuses,
        ngram,
        config.ngram_weight,
    )


def _words_of(text: str, spelling: Spelling) -> list[str]:
    return spelling.tokenizer.normalizer(text).split()


def _check_written(words: Sequence[str], spelling: Spelling) -> None:
    for word, row in zip(words, spelling.spell(words), strict=True):
        if NO_LETTER in row:
            problem = f"'{word}' cannot be written with the symbols of the model."
            raise TextError("words", problem, "Spell it with the letters that the model was trained on.")


def _values(trie: WordTrie, ends: np.ndarray, scores: np.ndarray) -> np.ndarray:
    values = trie.highest_below(np.where(ends >= 0, scores.take(ends), -np.inf))
    values[ROOT], values[OFF] = 0.0, scores[-1]
    return values


def _warm(trie: WordTrie, values: np.ndarray, ends: np.ndarray, letters: np.ndarray, bonus: float) -> int:
    """Grants the bonus of a hot word letter by letter; its number."""
    path = [ROOT]
    for letter in letters[letters != trie.num_letters]:
        path.append(int(trie.step(np.array([path[-1]]), letter)[0]))
    for depth, node in enumerate(path[1:], 1):
        values[node] += bonus * depth / (len(path) - 1)
    return int(ends[path[-1]])
