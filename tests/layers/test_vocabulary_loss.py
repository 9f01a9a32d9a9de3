"""Cross-entropy in stretches is cross-entropy."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.layers import vocabulary_loss as module
from sonant.layers.vocabulary_loss import IGNORED, target_log_probs, vocabulary_loss


def drawn(tokens: int, width: int, symbols: int, *, bias: bool, seed: int = 0) -> list[torch.Tensor | None]:
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(tokens, width, generator=generator).requires_grad_()
    weight = torch.randn(symbols, width, generator=generator).requires_grad_()
    shift = torch.randn(symbols, generator=generator).requires_grad_() if bias else None
    targets = torch.randint(0, symbols, (tokens,), generator=generator)
    targets[torch.rand(tokens, generator=generator) < 0.2] = IGNORED
    return [hidden, weight, shift, targets]


@settings(max_examples=30, deadline=None)
@given(
    tokens=st.integers(0, 300),
    symbols=st.integers(1, 40),
    bias=st.booleans(),
    stretch=st.sampled_from([1, 3000]),
    scale=st.floats(0.01, 10),
    smoothing=st.sampled_from([0.0, 0.1, 0.7]),
)
def test_loss_and_gradients_are_those_of_cross_entropy(tokens, symbols, bias, stretch, scale, smoothing):
    hidden, weight, shift, targets = drawn(tokens, 6, symbols, bias=bias)
    leaves = [leaf for leaf in (hidden, weight, shift) if leaf is not None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_STRETCH_LOGITS", stretch)
        total, num_correct = vocabulary_loss(hidden, weight, shift, targets, smoothing)
        found = torch.autograd.grad(total * scale, leaves)
    logits = F.linear(hidden, weight, shift)
    expected = F.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(total, expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(found, torch.autograd.grad(expected * scale, leaves), rtol=1e-4, atol=1e-4)
    assert num_correct == (logits.argmax(1) == targets).sum()


def test_without_gradients_the_loss_is_the_same():
    hidden, weight, shift, targets = drawn(100, 8, 20, bias=True)
    total, num_correct = vocabulary_loss(hidden, weight, shift, targets)
    with torch.no_grad():
        again, correct_again = vocabulary_loss(hidden, weight, shift, targets)
    assert torch.equal(num_correct, correct_again)
    torch.testing.assert_close(total, again)


def test_log_probabilities_are_those_of_log_softmax():
    hidden, weight, _, targets = drawn(200, 8, 20, bias=False)
    targets = targets.clamp(min=0)
    log_probs, is_correct = target_log_probs(hidden, weight, None, targets)
    expected = (hidden @ weight.t()).log_softmax(1).gather(1, targets[:, None]).squeeze(1)
    torch.testing.assert_close(log_probs, expected)
    assert torch.equal(is_correct, (hidden @ weight.t()).argmax(1) == targets)


def test_in_bf16_sums_are_still_those_of_float32():
    hidden, weight, _, targets = drawn(4000, 16, 300, bias=False)
    expected = F.cross_entropy(hidden @ weight.t(), targets, ignore_index=IGNORED, reduction="sum")
    gradients = torch.autograd.grad(expected, [hidden, weight])
    with torch.autocast("cpu", torch.bfloat16):
        total, _ = vocabulary_loss(hidden, weight, None, targets)
    assert total.dtype == torch.float32
    torch.testing.assert_close(total, expected, rtol=2e-3, atol=0)
    for found, wanted in zip(torch.autograd.grad(total, [hidden, weight]), gradients, strict=True):
        assert F.cosine_similarity(found.flatten(), wanted.flatten(), dim=0) > 0.999


def test_only_what_learns_gets_a_gradient():
    hidden, weight, _, targets = drawn(50, 8, 20, bias=False)
    total, _ = vocabulary_loss(hidden, weight.detach(), None, targets)
    total.backward()
    assert hidden.grad is not None
    assert weight.grad is None


def test_extreme_logits_give_finite_losses():
    hidden, weight = torch.full((2, 1), 100.0), torch.tensor([[100.0], [-100.0]])
    total, _ = vocabulary_loss(hidden.requires_grad_(), weight, None, torch.tensor([0, 1]))
    assert total.item() == 20000
