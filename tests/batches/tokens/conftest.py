"""A few documents and a tokenizer for them."""

from __future__ import annotations

import numpy as np
import pytest

from sonant.batches.tokens.documents import Texts, texts_of_stream
from sonant.batches.tokens.token_file import TokenFile
from sonant.batches.tokens.writing import TokenizingConfig, tokenized
from sonant.text.normalize import NormalizerConfig
from sonant.text.tokenizer import CharactersConfig, Tokenizer, train_tokenizer
from sonant.text.vocabulary import VocabularyConfig


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Letters and the space, with a symbol for the end."""
    vocabulary = VocabularyConfig(eos="</s>", word_delimiter="", alphabet=" abcdefghijklmnopqrstuvwxyz")
    return train_tokenizer([], CharactersConfig(vocabulary=vocabulary, normalizer=NormalizerConfig(steps=())))


@pytest.fixture(scope="session")
def documents() -> list[tuple[str, str]]:
    """40 of them, of 1 to 120 letters."""
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz "))
    return [(f"d{number}", "".join(rng.choice(letters, rng.integers(1, 121)))) for number in range(40)]


@pytest.fixture(scope="session")
def texts(documents) -> Texts:
    return texts_of_stream(documents, "forty documents")


@pytest.fixture(scope="session")
def file(tmp_path_factory, texts, tokenizer) -> TokenFile:
    return tokenized(texts, tokenizer, str(tmp_path_factory.mktemp("tokens")), TokenizingConfig(workers=2))
