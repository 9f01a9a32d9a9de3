"""Self-attention: each frame looks at every real frame of its utterance.

Shapes: B utterances, T frames, D width, H heads, C = D / H.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.layers.dropout_attention import attend_with_dropout
from sonant.layers.linear import Linear


class SelfAttention(nn.Module):
    def __init__(self, width: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        assert width % num_heads == 0, "the config refuses such widths by name"
        self.num_heads, self.dropout = num_heads, dropout
        self.query, self.key, self.value, self.out = (Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, may_see: Tensor | None) -> Tensor:
        """Maps (B, T, D) to (B, T, D); `may_see` (B, 1, 1, T) is true where a frame may be looked at, None: all."""
        query, key, value = (self._heads(project(x)) for project in (self.query, self.key, self.value))
        chance = self.dropout if self.training else 0.0
        if chance and x.device.type == "cpu" and not torch.compiler.is_compiling():
            y = attend_with_dropout(query, key, value, may_see, query.shape[-1] ** -0.5, chance)  # (B, H, T, C)
        else:
            y = F.scaled_dot_product_attention(query, key, value, may_see, dropout_p=chance)
        merged: Tensor = self.out(y.transpose(1, 2).reshape(x.shape))
        return merged

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.num_heads, x.shape[-1] // self.num_heads).transpose(1, 2)  # (B, H, T, C)


def may_see(is_real: Tensor) -> Tensor:
    """From (B, T) real frames to what attention takes; an utterance of no frame sees its padding, and no NaN."""
    is_first = torch.arange(is_real.shape[1], device=is_real.device) == 0
    return (is_real | is_first)[:, None, None, :]
