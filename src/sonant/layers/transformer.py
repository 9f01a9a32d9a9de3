"""Layers of attention and feed-forward as wav2vec 2.0 and its kin stack them, with the norm before or after each half.

Shapes: B utterances, T frames, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.layers.attention import SelfAttention
from sonant.layers.dropout import Dropout
from sonant.layers.feedforward import FeedForward
from sonant.layers.gradients import with_zero_gradients
from sonant.layers.layer_drop import is_dropped

_Chance = Annotated[float, Within(0, 0.99)]


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    width: Annotated[int, Within(1, 65536)] = 768
    hidden_width: Annotated[int, Within(1, 262144)] = 3072
    num_layers: Annotated[int, Within(0, 1000)] = 12
    num_heads: Annotated[int, Within(1, 1000)] = 12
    norm_first: bool = False  # before attention and feed-forward, and once at the end: steadier in deep stacks
    dropout: _Chance = 0.1  # of what each half adds
    attention_dropout: _Chance = 0.1
    hidden_dropout: _Chance = 0.1  # inside the feed-forward
    layer_drop: _Chance = 0.1

    def __post_init__(self) -> None:
        check_fields(self)
        if self.width % self.num_heads:
            problem = f"{self.num_heads} heads cannot share a width of {self.width} evenly."
            raise ConfigError("num_heads", problem, "Choose a divisor of the width.")


class TransformerLayer(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm_first = config.norm_first
        self.attention = SelfAttention(config.width, config.num_heads, config.attention_dropout)
        self.attention_norm = nn.LayerNorm(config.width)
        self.feedforward = FeedForward(config.width, config.hidden_width, config.hidden_dropout)
        self.feedforward_norm = nn.LayerNorm(config.width)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, may_see: Tensor | None) -> Tensor:
        """Maps (B, T, D) to (B, T, D)."""
        if self.norm_first:
            x = x + self.dropout(self.attention(self.attention_norm(x), may_see))
            x = x + self.dropout(self.feedforward(self.feedforward_norm(x)))
        else:
            x = self.attention_norm(x + self.dropout(self.attention(x, may_see)))
            x = self.feedforward_norm(x + self.dropout(self.feedforward(x)))
        return x


class Transformer(nn.Module):
    """The stack; with `is_checkpointed` a layer keeps only its input and is computed again backward."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(TransformerLayer(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.width)  # before the first layer, or behind the last
        self.dropout = Dropout(config.dropout)
        self.is_checkpointed = False

    def forward(self, x: Tensor, may_see: Tensor | None, draw: int | None = None) -> list[Tensor]:
        """Maps (B, T, D) to what enters the first layer and what leaves each, the last as the stack gives it.

        `draw` belongs to the step and decides which layers are dropped in training; None: none.
        """
        x = self.dropout(x if self.config.norm_first else self.norm(x))
        states = [x]
        for number, layer in enumerate(self.layers):
            if self.training and draw is not None and is_dropped(number, self.config.layer_drop, draw):
                x = with_zero_gradients(x, layer.parameters())
            elif self.is_checkpointed and torch.is_grad_enabled():
                x = checkpoint(layer, x, may_see, use_reentrant=False)
            else:
                x = layer(x, may_see)
            states.append(x)
        if self.config.norm_first:
            states[-1] = self.norm(x)
        return states
