"""Many texts at once: the ids of each are those that it has by itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import TextError
from sonant.text.bulk import BulkCoder
from sonant.text.normalize import NormalizerConfig
from sonant.text.tokenizer import CharactersConfig, SubwordsConfig, Tokenizer, train_tokenizer
from sonant.text.vocabulary import VocabularyConfig

TEXTS = [
    "the cat, it's said, sat on 12 mats.\nThe  mat's 3 cats 'sat' too!",
    "don't\tyou'll see\u00a0it\u2028'tis <s> so",
]
PLAIN = NormalizerConfig(steps=())
# What byte-level pairs cut at, and what they do not: the awkward neighbours of words.
AWKWARD = st.text(
    st.sampled_from("ab é'\u2019.,!_19²½Ⅷ \n\t\r\x0b\x1c\x85\u00a0\u2003\u2028<s>\0\u0301中😀"), max_size=40
)


@cache
def tokenizer(kind: str) -> Tokenizer:
    if kind == "characters":
        return train_tokenizer(TEXTS, CharactersConfig(normalizer=PLAIN))
    return train_tokenizer(TEXTS * 3, SubwordsConfig(kind=kind, size=330 if kind == "bpe" else 60, normalizer=PLAIN))


@settings(max_examples=150, deadline=None)
@given(texts=st.lists(AWKWARD, max_size=4), kind=st.sampled_from(["bpe", "unigram", "characters"]))
def test_texts_together_have_the_ids_of_each_alone(texts, kind):
    one = tokenizer(kind)
    ids, counts = BulkCoder(one)(texts)
    found = np.split(ids, np.cumsum(counts))[: len(texts)]
    assert [part.tolist() for part in found] == [one.encode(text) for text in texts]


def test_what_was_seen_before_changes_nothing():
    coder, one = BulkCoder(tokenizer("bpe")), tokenizer("bpe")
    for text in (TEXTS[0], TEXTS[1], TEXTS[0] + TEXTS[1]):
        assert coder([text])[0].tolist() == one.encode(text)


def test_a_character_without_a_symbol_is_told():
    one = train_tokenizer(["abc"], CharactersConfig(vocabulary=VocabularyConfig(unknown=""), normalizer=PLAIN))
    with pytest.raises(TextError, match="the vocabulary has neither 'd'"):
        BulkCoder(one)(["abd"])
