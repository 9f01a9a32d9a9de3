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
        with torch.autocast(query.device.type, enabled=False):
            similarities = query @ (key * scale).transpose(2, 3)  # (B, H, T, S)
            if mask is not None and mask.dtype == torch.bool:
                similarities.masked_fill_(~mask, torch.finfo(similarities.dtype).min)
            elif mask is not None:
                similarities += mask
            weights = similarities.softmax(dim=-1)
            keeps = kept(weights.shape, probability, weights.dtype) if probability else None
            ctx.save_for_backward(query, key, value, weights, keeps)
            ctx.scale = scale
            return (weights if keeps is None else weights * keeps) @ value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, wanted: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights, keeps = ctx.saved_tensors
        with torch.autocast(query.device.type, enabled=False):
            of_value = (weights if keeps is None else weights * keeps).transpose(2, 3) @ wanted
            of_weights = wanted @ value.transpose(2, 3)
            if keeps is not None:
                of_weights *= keeps
            # Softmax on the way back; what was masked has no weight, and gets nothing.
            of_similarities = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype).mul_(ctx.scale)
            of_query = of_similarities @ key
            of_key = of_similarities.transpose(2, 3) @ query
        return of_query, of_key, of_value, None, None, None
