"""Parts of `transformers` networks that a processor does faster in another way; what they compute stays the same.

A dropout draws one number for every element and waits for the generator; `gelu_new` is written as eight passes over
memory; attention with dropout leaves its fast kernel and keeps several copies of all weights of attention.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sonant.layers.dropout_attention import attend_with_dropout
from sonant.models.exchanged import FasterDropout, choose_attention

ATTENTION = "sonant"  # what a config calls the attention below
_SHORT = 512  # tokens of a row; with longer ones the kernel of torch that skips what is masked is faster


def with_faster_parts(network: nn.Module) -> None:
    """Exchanges them in place; no weight has another name afterwards."""
    from transformers.activations import NewGELUActivation

    for module in network.modules():
        for name, part in module.named_children():
            if type(part) is nn.Dropout:
                part.__class__ = FasterDropout
            elif isinstance(part, NewGELUActivation):
                setattr(module, name, nn.GELU(approximate="tanh"))
    choose_attention(network, ATTENTION, attend)


def _is_plain(module: Any, others: dict[str, Any]) -> bool:
    """Whether nothing is asked for but looking back."""
    looks_back = others.get("is_causal") is not False and getattr(module, "is_causal", True)
    return looks_back and all(others.get(name) is None for name in ("softcap", "position_bias", "cache"))


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Maps (B, H, T, C) to (B, T, H, C), as `transformers` asks its kinds of attention."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    is_short = query.dtype == torch.bfloat16 and torch.is_grad_enabled() and query.shape[2] <= _SHORT
    if query.device.type != "cpu" or not (dropout or is_short) or not _is_plain(module, others):
        found: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **others
        )
        return found
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (part.repeat_interleave(groups, dim=1) for part in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if attention_mask is None:
        attention_mask = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device).tril()
    return attend_with_dropout(query, key, value, attention_mask, scale, dropout).transpose(1, 2), None
