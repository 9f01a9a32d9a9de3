"""Attention with dropout on a processor: what it keeps for the way back is small, and little of it is done twice.

torch's own kernel leaves its fast path where there is dropout, draws a number for each pair of tokens in one thread,
and keeps several arrays of all pairs. In bf16 its fast path has a way back that is slower than this for short rows.

Shapes: B rows, H heads, T tokens, S tokens that are looked at, C width of a head.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sonant.layers.dropout import kept

_AT_ONCE = 2**18  # numbers of a stretch


def attend_with_dropout(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float, probability: float
) -> Tensor:
    """Maps (B, H, T, C), twice (B, H, S, C), and what may be seen (broadcast to B, H, T, S) to (B, H, T, C).

    The mask is boolean, or added; None: all may be seen. A token that may see nothing, which is padding, sees all
    alike, and no NaN.
    """
    attended: Tensor = _DropoutAttention.apply(query, key, value, mask, scale, probability)  # type: ignore[no-untyped-call]
    return attended


class _DropoutAttention(torch.autograd.Function):
    """Rows and heads are one dimension M inside, each in one piece: copied once, not for every product."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scale: float,
        probability: float,
    ) -> Tensor:
        ctx.size, ctx.scale = query.shape, scale
        with torch.autocast(query.device.type, enabled=False):
            q, k, v = (part.flatten(0, 1) for part in (query, key, value))  # (M, T, C), (M, S, C)
            weights = _softmax(_similarities(q, k, mask, scale, query.shape[:2]))  # (M, T, S)
            keeps = kept(weights.shape, probability, weights.dtype) if probability else None
            ctx.save_for_backward(q, k, v, weights, keeps)
            return ((weights if keeps is None else weights * keeps) @ v).view(query.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, wanted: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, keeps = ctx.saved_tensors
        rows, heads = ctx.size[:2]
        with torch.autocast(wanted.device.type, enabled=False):
            wanted = wanted.reshape(q.shape)
            of_value = (weights if keeps is None else weights * keeps).transpose(1, 2) @ wanted
            of_weights = wanted @ v.transpose(1, 2)
            if keeps is not None:
                of_weights *= keeps
            # Softmax on the way back; what was masked has no weight, and gets nothing.
            of_similarities = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype).mul_(ctx.scale)
            of_query = of_similarities @ k
            of_key = of_similarities.transpose(1, 2) @ q
        return *(part.view(rows, heads, *part.shape[1:]) for part in (of_query, of_key, of_value)), None, None, None


def _similarities(q: Tensor, k: Tensor, mask: Tensor | None, scale: float, rows_and_heads: torch.Size) -> Tensor:
    """(M, T, S), what is masked far below all else."""
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill_(~mask, torch.finfo(q.dtype).min)
    is_of_keys = mask is not None and mask.ndim == 4 and mask.shape[1:3] == (1, 1)
    if mask is not None and is_of_keys:  # the same for all tokens of a row: added where the product is made
        added = mask.to(q.dtype).expand(*rows_and_heads, 1, -1).flatten(0, 1)
        return torch.baddbmm(added, q, k.transpose(1, 2), alpha=scale)
    found = torch.baddbmm(q.new_zeros(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=scale)
    if mask is not None:
        found.view(*rows_and_heads, *found.shape[1:]).add_(mask)
    return found


def _softmax(similarities: Tensor) -> Tensor:
    """In bf16 a stretch at a time in float32, while it is in the cache: a fifth faster than torch's own in bf16."""
    if similarities.dtype != torch.bfloat16:
        return similarities.softmax(dim=-1)
    found = torch.empty_like(similarities)
    at_once = max(1, _AT_ONCE // max(1, similarities.shape[1] * similarities.shape[2]))
    for given, target in zip(torch.split(similarities, at_once), torch.split(found, at_once), strict=True):
        target.copy_(given.softmax(dim=-1, dtype=torch.float32))
    return found
