"""The linear layer, computed by the faster of two libraries.

On a CPU in float32 a 1 × 1 convolution in channels-last order is the same sums by oneDNN, which serves processors of
every maker with all their threads; the BLAS behind `F.linear` favours one (bench/pretrain.py prints both rates).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    """As `nn.Linear`, in parameters and results."""

    def forward(self, x: Tensor) -> Tensor:
        """Maps (…, D) to (…, E)."""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Maps x (…, D) by weight (E, D) and bias (E,) to (…, E)."""
    if not is_convolution_faster(x, weight):
        return F.linear(x, weight, bias)
    rows = x.reshape(1, -1, 1, x.shape[-1]).permute(0, 3, 1, 2)  # (1, D, …, 1), channels last
    y = F.conv2d(rows, weight[:, :, None, None], bias)  # (1, E, …, 1)
    return y.permute(0, 2, 3, 1).reshape(*x.shape[:-1], weight.shape[0])


def is_convolution_faster(x: Tensor, weight: Tensor) -> bool:
    is_plain = x.dtype == weight.dtype == torch.float32 and not torch.is_autocast_enabled(x.device.type)
    has_library: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return is_plain and x.device.type == "cpu" and has_library and not torch.compiler.is_compiling() and x.numel() > 0


def computing_dtype(x: Tensor, weight: Tensor) -> torch.dtype:
    """What matrix products of a float tensor run in: autocast's type where it is on, else the weight's own."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
