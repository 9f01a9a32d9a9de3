"""Cross-entropy over a vocabulary without ever holding all logits: stretch by stretch, gradients made on the way.

With V symbols and N tokens the usual way holds N·V logits three times over (themselves, in float32, their gradient).
Here a stretch of rows is turned into logits, its loss and its share of the gradients, and is forgotten. What is summed
over symbols, tokens or stretches is summed in float32, whatever the products are made in.

Shapes: N tokens, D width, V symbols, C tokens of a stretch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

IGNORED = -100  # a target that is none
_STRETCH_LOGITS = 1 << 24  # 64 MB in float32: so large that the gradient of the head is seldom added up


def vocabulary_loss(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The sum of -log p(target), a float32 scalar, and how many targets had the highest logit.

    hidden (N, D), head (V, D) with bias (V,) or None, targets (N,), of which IGNORED ones do not count. With smoothing
    the mean of -log p over all symbols has that share of the loss (Szegedy et al. 2016), where gradients are made.
    """
    kept = (targets != IGNORED).nonzero().squeeze(1)
    if len(kept) < len(targets):
        hidden, targets = hidden.index_select(0, kept), targets.index_select(0, kept)
    if torch.is_grad_enabled() and (hidden.requires_grad or weight.requires_grad):
        made: tuple[Tensor, Tensor] = _VocabularyLoss.apply(  # type: ignore[no-untyped-call]
            hidden, weight, bias, targets, smoothing
        )
        return made
    log_probs, is_correct = target_log_probs(hidden, weight, bias, targets)
    return -log_probs.sum(), is_correct.sum()


@torch.no_grad()
def target_log_probs(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    """log p(target) (N,) in float32, and whether the target had the highest logit (N,)."""
    head = _Head(hidden, weight, bias)
    found = [_scored(head.logits(rows), targets[rows])[:2] for rows in head.stretches()]
    if not found:
        return hidden.new_zeros(0, dtype=torch.float32), targets.new_zeros(0, dtype=torch.bool)
    log_probs, is_correct = zip(*found, strict=True)
    return torch.cat(log_probs), torch.cat(is_correct)


class _VocabularyLoss(torch.autograd.Function):
    """Makes the gradients with the loss, for a scale of 1; backward only scales them."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        needs_hidden, needs_weight, needs_bias, *_ = ctx.needs_input_grad
        head = _Head(hidden, weight, bias)
        total, num_correct = hidden.new_zeros((), dtype=torch.float32), targets.new_zeros(())
        of_hidden = torch.empty_like(hidden) if needs_hidden else None
        of_weight: Tensor | None = None
        of_bias = torch.zeros_like(bias, dtype=torch.float32) if bias is not None and needs_bias else None
        for rows in head.stretches():
            logits = head.logits(rows)
            log_probs, is_correct, probabilities = _scored(logits, targets[rows])
            total -= (1 - smoothing) * log_probs.sum()
            num_correct += is_correct.sum()
            # p - [is target]: what the loss wants of the logits.
            share = probabilities.new_full((len(log_probs), 1), smoothing - 1.0)
            probabilities.scatter_add_(1, targets[rows, None], share)
            if smoothing:
                total -= smoothing * _mean_log_prob(logits, log_probs, targets[rows]).sum()
                probabilities -= smoothing / logits.shape[1]
            if of_bias is not None:
                of_bias += probabilities.sum(0)
            wanted = probabilities.to(head.kind)  # (C, V)
            with torch.autocast(hidden.device.type, enabled=False):
                if of_hidden is not None:
                    of_hidden[rows] = wanted @ head.weight  # (C, D)
                if needs_weight:
                    of_weight = _plus_product(of_weight, wanted.t(), head.hidden[rows])  # (V, D)
        if needs_weight and of_weight is None:
            of_weight = torch.zeros_like(weight)  # there was no target
        ctx.kinds = weight.dtype, None if bias is None else bias.dtype
        ctx.save_for_backward(of_hidden, of_weight, of_bias)
        ctx.mark_non_differentiable(num_correct)
        return total, num_correct

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        of_hidden, of_weight, of_bias = ctx.saved_tensors
        of_weights, of_biases = ctx.kinds
        return (
            None if of_hidden is None else of_hidden.mul_(scale.to(of_hidden.dtype)),
            None if of_weight is None else of_weight.mul_(scale).to(of_weights),
            None if of_bias is None else of_bias.mul_(scale).to(of_biases),
            None,
            None,
        )


class _Head:
    """Turns stretches of hidden rows into logits, with products in the precision that autocast asks for."""

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        device = hidden.device.type
        self.kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        self.hidden, self.weight = hidden.detach().to(self.kind), weight.detach().to(self.kind)
        self.bias = None if bias is None else bias.detach().float()

    def stretches(self) -> Iterator[slice]:
        """Rows of all stretches, as many in each, since a short one takes products as long as a long one does."""
        total = len(self.hidden)
        most = max(_STRETCH_LOGITS // max(len(self.weight), 1), 64)
        rows = math.ceil(total / math.ceil(total / most)) if total else 1
        yield from (slice(first, first + rows) for first in range(0, total, rows))

    def logits(self, rows: slice) -> Tensor:
        """(C, V) in the precision of products, plus a bias in float32."""
        with torch.autocast(self.hidden.device.type, enabled=False):
            logits = self.hidden[rows] @ self.weight.t()
        return logits if self.bias is None else logits + self.bias


def _scored(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log p(target) (C,), whether it comes first (C,), and p (C, V), all of it from float32."""
    probabilities = logits.softmax(dim=1, dtype=torch.float32)
    target, highest = logits.gather(1, targets[:, None]), logits.amax(dim=1, keepdim=True)
    # p of the likeliest is never too small for its logarithm, unlike that of the target.
    log_probs = (target - highest).float() + probabilities.amax(dim=1, keepdim=True).log()
    return log_probs.squeeze(1), _is_first(logits, targets, (target == highest).squeeze(1)), probabilities


def _mean_log_prob(logits: Tensor, log_probs: Tensor, targets: Tensor) -> Tensor:
    """(C,) over all symbols: mean(logit) - log Σ exp(logit), the latter from what the target has."""
    target = logits.gather(1, targets[:, None]).squeeze(1).float()
    return logits.mean(dim=1, dtype=torch.float32) - (target - log_probs)


def _is_first(logits: Tensor, targets: Tensor, is_highest: Tensor) -> Tensor:
    """Whether the target is what argmax finds; of equal logits that is the first, and it is looked for in few rows."""
    rows = is_highest.nonzero().squeeze(1)
    is_first = logits.index_select(0, rows).argmax(dim=1) == targets.index_select(0, rows)
    return is_highest.index_copy(0, rows, is_first)


def _plus_product(total: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    """total + left @ right, summed in float32, in the place of the total."""
    if total is None:
        return (left @ right).float()
    return total.addmm_(left, right) if right.dtype == torch.float32 else total.add_(left @ right)
