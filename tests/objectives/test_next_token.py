"""The next token: equal to transformers' own loss, and to each document by itself where documents are masked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sonant.batches.batch import TokenBatch
from sonant.batches.collate import collate_tokens
from sonant.models.causal import CausalConfig, new_model
from sonant.objectives.next_token import NextToken, NextTokenConfig

SMALL = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2},
    "llama": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    | {"num_key_value_heads": 2},
}
SYMBOLS = 53


@pytest.fixture(params=sorted(SMALL))
def model(request) -> torch.nn.Module:
    torch.manual_seed(0)
    made = new_model(CausalConfig(architecture=request.param, settings=SMALL[request.param]), SYMBOLS, 32, {})
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))  # far from chance, so that nothing cancels
    return made.eval()


def rows(*sizes: tuple[int, ...]) -> TokenBatch:
    """Rows of documents of so many tokens."""
    rng = np.random.default_rng(0)
    documents = [[rng.integers(0, SYMBOLS, size) for size in row] for row in sizes]
    return collate_tokens(documents, [f"r{number}" for number in range(len(sizes))])


def test_the_loss_is_that_of_transformers(model):
    batch, objective = rows((7, 9), (12,), (1,)), NextToken()
    loss = objective(model, batch, 0)
    labels = batch.tokens
    whole = model(input_ids=labels.clamp(min=0), labels=labels, attention_mask=(labels >= 0).long())
    total, count = loss.parts["next_token"].total, objective.counts(batch)["tokens"]
    assert count == 26
    torch.testing.assert_close(total / count, whole.loss, rtol=1e-5, atol=1e-5)
    is_hit = (whole.logits[:, :-1].argmax(2) == labels[:, 1:]) & (labels[:, 1:] >= 0)
    assert loss.health["accuracy"].total == is_hit.sum()
    names, parameters = zip(*model.named_parameters(), strict=True)
    ours = torch.autograd.grad(loss.divided_by({"tokens": count}), parameters)
    for name, found, expected in zip(names, ours, torch.autograd.grad(whole.loss, parameters), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5, msg=name)


def test_masked_documents_are_as_each_by_itself(model):
    objective = NextToken(NextTokenConfig(mask_documents=True, reset_positions=True))
    together = rows((7, 9, 4), (12,))
    whole = objective(model, together, 0).parts["next_token"].total
    rng = np.random.default_rng(0)
    alone = [collate_tokens([[rng.integers(0, SYMBOLS, size)]], ["one"]) for size in (7, 9, 4, 12)]
    parts = [NextToken()(model, one, 0).parts["next_token"].total for one in alone]
    torch.testing.assert_close(whole, torch.stack(parts).sum(), rtol=1e-5, atol=1e-4)
    assert objective.counts(together)["tokens"] == sum(NextToken().counts(one)["tokens"] for one in alone)


@pytest.mark.parametrize("config", [{"mask_documents": True}, {"reset_positions": True}])
def test_each_option_for_documents_has_its_own_effect(model, config):
    batch = rows((7, 9, 4), (12,))
    plain, changed = (NextToken(NextTokenConfig(**one))(model, batch, 0) for one in ({}, config))
    assert not torch.isclose(plain.parts["next_token"].total, changed.parts["next_token"].total, rtol=1e-4)


def test_padding_changes_nothing(model):
    batch, objective = rows((5,), (16,), (9, 3)), NextToken()
    whole = objective(model, batch, 0).parts["next_token"].total
    alone = [objective(model, batch.select([row]), 0).parts["next_token"].total for row in range(3)]
    torch.testing.assert_close(whole, torch.stack(alone).sum(), rtol=1e-5, atol=1e-4)


def test_the_future_never_changes_the_past(model):
    batch, objective = rows((16,)), NextToken()
    shorter = batch.select([0])
    longer = objective(model, batch, 0).parts["next_token"].total
    changed = batch.tokens.clone()
    changed[0, -1] = (changed[0, -1] + 1) % SYMBOLS
    cut = TokenBatch(**{**vars(shorter), "tokens": shorter.tokens[:, :-1]})
    rest = objective(model, cut, 0).parts["next_token"].total
    other = objective(model, TokenBatch(**{**vars(batch), "tokens": changed}), 0).parts["next_token"].total
    assert longer > rest
    assert other > rest
    assert not torch.isclose(longer, other)


def test_an_empty_batch_and_a_row_of_one_token_count_nothing(model):
    objective = NextToken()
    assert objective.counts(rows((3,)).select([])) == {"tokens": 0.0}
    single = rows((1,))
    loss = objective(model, single, 0)
    assert (objective.counts(single)["tokens"], loss.parts["next_token"].total.item()) == (0.0, 0.0)
    loss.divided_by(objective.counts(single)).backward()


def test_four_batches_of_two_weigh_as_one_of_eight(model):
    batch, objective = rows(*[(size,) for size in (3, 17, 9, 4, 12, 8, 20, 2)]), NextToken()
    counts = objective.counts(batch)
    whole = torch.autograd.grad(objective(model, batch, 0).divided_by(counts), list(model.parameters()))
    for first in range(0, 8, 2):
        objective(model, batch.select([first, first + 1]), 0).divided_by(counts).backward()
    for parameter, expected in zip(model.parameters(), whole, strict=True):
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-4, atol=1e-6)
