"""Positions told by the neighbourhood: a wide grouped convolution whose weight is a direction and a length per tap.

Shapes: B utterances, T frames, D width, K taps, G groups, C = D / G channels of a group, N blocks of R frames.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sonant.layers.gradients import with_zero_gradients
from sonant.layers.linear import computing_dtype

_BLOCK = 8  # frames whose gradients of the weight are one product: 4 to 16 are alike, 1 is 4 times slower in bf16


class PositionalConvolution(nn.Module):
    def __init__(self, width: int, kernel_size: int, num_groups: int) -> None:
        super().__init__()
        self.kernel_size, self.num_groups = kernel_size, num_groups
        weight = torch.randn(width, width // num_groups, kernel_size) * 2 / math.sqrt(kernel_size * width)
        self.direction = nn.Parameter(weight)  # (D, D/G, K)
        self.length = nn.Parameter(weight.norm(dim=(0, 1), keepdim=True))  # (1, 1, K)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (B, T, D) to what is added to it; padding must be zero."""
        if not x.shape[1]:
            return with_zero_gradients(x, self.parameters())  # torch convolves no frames at all
        weight = self.direction * (self.length / self.direction.norm(dim=(0, 1), keepdim=True))
        return F.gelu(convolved(x, weight, self.bias, self.num_groups))


def convolved(x: Tensor, weight: Tensor, bias: Tensor | None, num_groups: int) -> Tensor:
    """Maps x (B, T, D) by a weight (D, D/G, K) around each frame to (B, T, D)."""
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return _forward(x, weight, num_groups, bias)
    dtype = computing_dtype(x, weight)
    y: Tensor = _Convolved.apply(x.to(dtype), weight.to(dtype), num_groups)  # type: ignore[no-untyped-call]
    return y if bias is None else y + bias.to(dtype)


class _Convolved(torch.autograd.Function):
    """torch's own way back to the weight is many times slower than its way forward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, num_groups: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.num_groups = num_groups
        with torch.autocast(x.device.type, enabled=False):
            return _forward(x, weight, num_groups)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        with torch.autocast(x.device.type, enabled=False):
            of_x = _of_input(gradient, weight, ctx.num_groups) if ctx.needs_input_grad[0] else None
            of_weight = _of_weight(gradient, x, weight, ctx.num_groups) if ctx.needs_input_grad[1] else None
        return of_x, of_weight, None


def _forward(x: Tensor, weight: Tensor, num_groups: int, bias: Tensor | None = None) -> Tensor:
    """Channels last, as the frames lie in memory: 3 times as fast on a CPU as the order of `conv1d`."""
    frames = x.transpose(1, 2).unsqueeze(3)  # (B, D, T, 1)
    taps = weight.unsqueeze(3).contiguous(memory_format=torch.channels_last)  # (D, C, K, 1)
    y = F.conv2d(frames, taps, bias, padding=(weight.shape[2] // 2, 0), groups=num_groups)
    return y.squeeze(3).transpose(1, 2)[:, : x.shape[1]]  # an even kernel gives one frame more


def _of_input(gradient: Tensor, weight: Tensor, num_groups: int) -> Tensor:
    """(B, T, D): the same convolution with all turned round."""
    channels, kernel = weight.shape[1:]
    turned = weight.view(num_groups, channels, channels, kernel).transpose(1, 2).flip(3).reshape(weight.shape)
    # Of an even kernel the left half is the longer one; turned round, the right half is.
    padded = F.pad(gradient, (0, 0, 0, 1)) if kernel % 2 == 0 else gradient
    found = _forward(padded, turned, num_groups)
    return found[:, 1:] if kernel % 2 == 0 else found


def _of_weight(gradient: Tensor, x: Tensor, weight: Tensor, num_groups: int) -> Tensor:
    """(D, C, K): the frames of a block with all that they see, as one product, whose diagonals belong to the taps."""
    rows, num_frames = x.shape[:2]
    channels, kernel = weight.shape[1:]
    num_blocks, seen = -(-num_frames // _BLOCK), _BLOCK + kernel - 1
    padded = num_blocks * _BLOCK + kernel - 1
    before = F.pad(x, (0, 0, kernel // 2, padded - num_frames - kernel // 2))
    before = before.view(rows, padded, num_groups, channels).permute(2, 0, 1, 3).contiguous()  # (G, B, T + …, C)
    windows = before.unfold(2, seen, _BLOCK).permute(0, 1, 2, 4, 3)  # (G, B, N, R + K - 1, C)
    behind = F.pad(gradient, (0, 0, 0, num_blocks * _BLOCK - num_frames))
    behind = behind.view(rows, num_blocks, _BLOCK, num_groups, channels).permute(3, 2, 4, 0, 1)  # (G, R, C, B, N)
    products = torch.bmm(
        behind.reshape(num_groups, _BLOCK * channels, rows * num_blocks),
        windows.reshape(num_groups, rows * num_blocks, seen * channels),
    )  # (G, R·C, (R + K - 1)·C)
    size, wide = (num_groups, _BLOCK, channels, kernel, channels), seen * channels
    strides = (_BLOCK * channels * wide, channels * wide + channels, wide, channels, 1)
    summed = products.as_strided(size, strides).sum(
        dim=1, dtype=torch.promote_types(x.dtype, torch.float32)
    )  # (G, C, K, C)
    return summed.transpose(2, 3).reshape(weight.shape).to(weight.dtype)
