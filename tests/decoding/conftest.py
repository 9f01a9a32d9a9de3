"""Small tokenizers and scores that every test of decoding stands on."""

from __future__ import annotations

import numpy as np
import pytest

from sonant.decoding.spelling import Spelling
from sonant.text.characters import CharacterTokenizer
from sonant.text.normalize import Normalizer, NormalizerConfig
from sonant.text.vocabulary import Vocabulary


def spelled_by(letters: str, *, delimiter: str | None = "|", specials: tuple[str, ...] = ()) -> Spelling:
    """A tokenizer of characters: the blank first, then the word delimiter."""
    symbols = ("<pad>", *([delimiter] if delimiter else []), *letters, *specials)
    named = {"bos": "<s>", "eos": "</s>"} if specials else {}
    vocabulary = Vocabulary(symbols=symbols, blank="<pad>", word_delimiter=delimiter, **named)
    return Spelling(CharacterTokenizer(vocabulary, Normalizer(NormalizerConfig(steps=()))))


def log_softmax(scores: np.ndarray) -> np.ndarray:
    return scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)


@pytest.fixture(scope="session", name="spelled_by")
def spelled_by_function():
    return spelled_by


@pytest.fixture(scope="session", name="log_softmax")
def log_softmax_function():
    return log_softmax


@pytest.fixture(scope="session")
def spelling() -> Spelling:
    """Symbols: <pad> | a b c."""
    return spelled_by("abc")
