"""Attention with dropout is attention whose weights are dropped, on the way forth and back."""

from __future__ import annotations

import pytest
import torch

from sonant.layers import dropout_attention as module
from sonant.layers.dropout import kept
from sonant.layers.dropout_attention import attend_with_dropout


def drawn(dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 3, 9, 4, generator=generator).to(dtype).requires_grad_() for _ in range(3)]


@pytest.mark.parametrize("is_added", [False, True])
@pytest.mark.parametrize("probability", [0.0, 0.3])
def test_values_and_gradients_are_those_of_plain_arithmetic(probability, is_added, monkeypatch):
    query, key, value = drawn()
    mask = torch.ones(9, 9, dtype=torch.bool).tril()
    keeps = kept(torch.Size((2, 3, 9, 9)), probability, torch.float32)
    monkeypatch.setattr(module, "kept", lambda shape, *_: keeps.view(shape))
    added = torch.zeros(9, 9).masked_fill(~mask, -torch.inf)
    weights = (query @ key.transpose(2, 3) * 0.4 + added).softmax(-1) * keeps
    found = attend_with_dropout(query, key, value, added if is_added else mask, 0.4, probability)
    torch.testing.assert_close(found, weights @ value)
    wanted = torch.randn(2, 3, 9, 4, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        torch.autograd.grad(found, [query, key, value], wanted),
        torch.autograd.grad(weights @ value, [query, key, value], wanted),
    )


def test_without_dropout_it_is_that_of_torch():
    query, key, value = drawn()
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=0.5)
    mask = torch.ones(9, 9, dtype=torch.bool).tril()
    torch.testing.assert_close(attend_with_dropout(query, key, value, mask, 0.5, 0.0), expected)
    everything = torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=0.5)
    torch.testing.assert_close(attend_with_dropout(query, key, value, None, 0.5, 0.0), everything)


def test_a_token_that_may_see_nothing_gets_no_nan():
    query, key, value = drawn()
    mask = torch.ones(9, 9, dtype=torch.bool).tril()
    mask[:3] = False
    found = attend_with_dropout(query, key, value, mask, 0.5, 0.1)
    found.sum().backward()
    assert all(one.isfinite().all() for one in (found, query.grad, key.grad, value.grad))


def test_in_bf16_it_stays_there():
    query, key, value = drawn(torch.bfloat16)
    found = attend_with_dropout(query, key, value, torch.ones(9, 9, dtype=torch.bool), 0.5, 0.1)
    found.sum().backward()
    assert {one.dtype for one in (found, query.grad, key.grad, value.grad)} == {torch.bfloat16}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_keys_that_are_masked_for_all_tokens_of_a_row_count_for_nothing(dtype):
    query, key, value = drawn(dtype)
    is_real = torch.arange(9)[None, :] < torch.tensor([9, 5])[:, None]
    mask = is_real[:, None, None, :]
    found = attend_with_dropout(query, key, value, mask, 0.5, 0.0)
    alone = [part[1:, :, :5] for part in (key, value)]
    expected = torch.nn.functional.scaled_dot_product_attention(query[1:], *alone, scale=0.5)
    torch.testing.assert_close(found[1:], expected, rtol=1e-5, atol=1e-5 if dtype == torch.float32 else 1e-2)
    gradients = torch.autograd.grad(found.float().square().sum(), [key, value])
    assert all(gradient[1, :, 5:].count_nonzero() == 0 for gradient in gradients)
    torch.testing.assert_close(attend_with_dropout(query, key, value, mask.expand(2, 1, 9, 9), 0.5, 0.0), found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.0, 0.3])
@pytest.mark.parametrize("size", [(0, 3, 9, 4), (2, 3, 0, 4), (0, 3, 0, 4)])
def test_nothing_attends_to_nothing(size, probability, dtype):
    query, key, value = (torch.zeros(size, dtype=dtype, requires_grad=True) for _ in range(3))
    for mask in (None, torch.ones(size[0], 1, 1, size[2], dtype=torch.bool), torch.ones(size[2], size[2]).bool()):
        found = attend_with_dropout(query, key, value, mask, 0.5, probability)
        found.sum().backward()
        assert found.shape == query.grad.shape == size
