"""The feed-forward layer: each frame thought over alone.

Shapes: … any, D width, H hidden width.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from sonant.layers.dropout import Dropout
from sonant.layers.linear import Linear


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden_width: int, dropout: float) -> None:
        super().__init__()
        self.widen = Linear(width, hidden_width)
        self.dropout = Dropout(dropout)
        self.narrow = Linear(hidden_width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (…, D) to (…, D)."""
        x = F.gelu(self.widen(x))  # (…, H)
        narrowed: Tensor = self.narrow(self.dropout(x))
        return narrowed
