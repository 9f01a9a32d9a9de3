"""Quantizers, however sure they are of their choice."""

from __future__ import annotations

import pytest
import torch

from sonant.layers.quantizers import ProductQuantizer, ProductQuantizerConfig


@pytest.mark.parametrize("bias", [0.0, -200.0])
def test_an_entry_that_has_become_impossible_does_not_spoil_gradients(bias):
    torch.manual_seed(0)
    quantizer = ProductQuantizer(8, ProductQuantizerConfig(num_groups=2, num_entries=16, width=4, noise=False))
    torch.nn.init.constant_(quantizer.choose.bias[:1], bias)
    x = torch.randn(3, 8, requires_grad=True)
    probabilities = quantizer.choose(x).view(3, 2, 16).softmax(dim=-1).mean(dim=0)
    assert (probabilities == 0).any() == (bias < 0)
    found = quantizer(x, 2.0)
    (found.perplexity + found.vectors.sum()).backward()
    entropy = torch.special.entr(probabilities).sum(dim=-1)
    torch.testing.assert_close(found.perplexity, entropy.exp().sum())
    for tensor in (x, *quantizer.parameters()):
        assert tensor.grad.isfinite().all()
        assert tensor.grad.any()
