"""Figures of a language model: those of a count by hand, whatever the rows they were made in."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sonant.batches.tokens.documents import texts_of_stream
from sonant.batches.tokens.source import PackingConfig, TokenSource
from sonant.batches.tokens.spans import ShareConfig, everything, shared_out
from sonant.batches.tokens.writing import TokenizingConfig, tokenized
from sonant.evaluation.language import document_rows, language_figures, score_documents
from sonant.inference.scorer import Scorer
from sonant.metrics.perplexity import bits, perplexity
from sonant.models.causal import CausalConfig, new_model
from sonant.objectives.next_token import NextToken, NextTokenConfig
from sonant.text.normalize import NormalizerConfig
from sonant.text.tokenizer import CharactersConfig, train_tokenizer
from sonant.text.vocabulary import VocabularyConfig

DOCUMENTS = [("one", "the cat sat"), ("two", "é è"), ("three", "on the mat with the hat " * 4), ("four", "x")]
SETTINGS = {"n_embd": 32, "n_layer": 2, "n_head": 2, "initializer_range": 0.2}
MASKED = NextTokenConfig(mask_documents=True, reset_positions=True)


@pytest.fixture(scope="module")
def tokenizer():
    vocabulary = VocabularyConfig(eos="</s>", word_delimiter="")
    config = CharactersConfig(vocabulary=vocabulary, normalizer=NormalizerConfig(steps=()))
    return train_tokenizer([text for _, text in DOCUMENTS], config)


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.manual_seed(0)
    return new_model(CausalConfig(settings=SETTINGS), tokenizer.size, 128, {}).eval()


@pytest.fixture(scope="module")
def file(tmp_path_factory, tokenizer):
    folder = str(tmp_path_factory.mktemp("tokens"))
    return tokenized(texts_of_stream(DOCUMENTS, "four"), tokenizer, folder, TokenizingConfig(separators="both"))


def source(file, packing: str = "single", block_size: int = 127, **options) -> TokenSource:
    return TokenSource(
        everything(file), PackingConfig(block_size=block_size, packing=packing, is_shuffled=False), **options
    )


@pytest.mark.parametrize("packing", ["single", "packed"])
def test_each_document_has_the_score_that_it_has_by_itself(model, tokenizer, file, packing):
    totals = score_documents(model, source(file, packing), NextToken(MASKED))
    scores = Scorer(model, tokenizer).score([text for _, text in DOCUMENTS])
    assert totals[:, 0] == pytest.approx([-score.log_prob for score in scores], abs=1e-3)
    assert totals[:, 1].tolist() == [score.num_tokens for score in scores]


def test_figures_are_those_of_a_count_by_hand(model, tokenizer, file):
    totals = score_documents(model, source(file), NextToken(MASKED))
    rows = document_rows(totals, everything(file), tokenizer)
    nats, tokens = totals[:, 0].sum(), sum(len(text) + 1 for _, text in DOCUMENTS)
    num_bytes = sum(len(text.encode()) for _, text in DOCUMENTS)
    words = sum(len(text.split()) for _, text in DOCUMENTS)
    assert [row.id for row in rows] == [id for id, _ in DOCUMENTS]
    assert language_figures(rows) == pytest.approx(
        {
            "loss": nats / tokens,
            "perplexity": math.exp(nats / tokens),
            "accuracy": totals[:, 2].sum() / tokens,
            "bits_per_byte": nats / math.log(2) / num_bytes,
            "word_perplexity": math.exp(nats / words),
            "tokens": tokens,
        }
    )


@pytest.mark.parametrize("block_size", [5, 40])
def test_every_token_but_the_first_is_scored_in_a_stream(model, tokenizer, file, block_size):
    totals = score_documents(model, source(file, "stream", block_size, rows_per_batch=3), NextToken())
    assert totals[:, 1].sum() == len(file) - 1
    assert totals[0, 1] == totals[0, 1].round() == file.ends[0] - 1


@pytest.mark.parametrize("world", [2, 3])
def test_what_ranks_find_adds_up_to_the_whole(model, file, world):
    whole = score_documents(model, source(file, "stream", 20, rows_per_batch=2), NextToken())
    parts = [
        score_documents(model, source(file, "stream", 20, rows_per_batch=2, rank=rank, world=world), NextToken())
        for rank in range(world)
    ]
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-6)


def test_a_document_that_is_cut_counts_with_its_part(model, tokenizer, file):
    validation = shared_out(everything(file), ShareConfig(share=0.4, by="tail"))[1]
    one = TokenSource(validation, PackingConfig(block_size=50, is_shuffled=False))
    rows = document_rows(score_documents(model, one, NextToken()), validation, tokenizer)
    first = validation.file.tokens[validation.starts[0] + 1 : validation.ends[0]].tolist()
    assert rows[0].counts["bits_per_byte"] == len(tokenizer.decode(first).encode())
    assert sum(row.counts["loss"] for row in rows) == validation.num_tokens - 1


def test_a_loss_beyond_all_numbers_is_an_infinite_perplexity():
    assert perplexity(1000) == math.inf
    assert perplexity(math.log(7)) == pytest.approx(7)
    assert bits(math.log(256)) == pytest.approx(8)
