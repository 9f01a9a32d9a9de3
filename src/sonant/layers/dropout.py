"""Dropout that does not wait for the random generator.

On a CPU torch draws one number for each element, alone in one thread, which takes three times as long as here (LOG.md)
and more than all else that happens to it. Here each 64-bit draw decides over four elements, to 1/65536 of the
probability. The bits come from torch's own generator, so that its state restored gives the same elements again.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_STEPS = 1 << 16
_LEAST = -(1 << 63)


class Dropout(nn.Module):
    """Zeroes each element with a probability while training, and lifts the others so that the mean stays."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.probability) if self.training else x

    def extra_repr(self) -> str:
        return f"{self.probability}"


def dropout(x: Tensor, probability: float) -> Tensor:
    if probability == 0 or x.numel() == 0:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, probability)
    return x * kept(x.shape, probability, x.dtype)


def kept(shape: torch.Size, probability: float, dtype: torch.dtype) -> Tensor:
    """What to multiply with: 0, or one over the share that is kept."""
    num_dropped = min(round(probability * _STEPS), _STEPS - 1)  # of 65536 equally likely values
    size = shape.numel()
    # From the least number and without an upper end: all 64 bits are drawn; by default the sign would stay 0.
    bits = torch.empty((size + 3) // 4, dtype=torch.int64).random_(_LEAST, None).view(torch.int16)[:size]
    is_kept = bits >= num_dropped - _STEPS // 2
    return is_kept.view(shape).to(dtype).mul_(_STEPS / (_STEPS - num_dropped))
