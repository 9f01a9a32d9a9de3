"""A strided convolution over frames that lie side by side, as matrix products of windows.

Shapes: R rows, S and T frames before and after, C and E channels before and after, K taps, W = K·C.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.grad import conv2d_weight

from sonant.layers.linear import is_convolution_faster, linear


def forward(x: Tensor, weight: Tensor, bias: Tensor | None, kernel: int, stride: int) -> Tensor:
    """Maps x (R, S, C) by weight (E, W), taps before channels, to (R, T, E)."""
    return linear(_windows(x, kernel, stride), weight, bias)


def of_weight(dz: Tensor, x: Tensor, kernel: int, stride: int) -> Tensor:
    """The gradient (E, C, K) of the weight from that of the result (R, T, E)."""
    windows = _windows(x, kernel, stride).flatten(0, 1)  # (R·T, W)
    gradient = _transposed_product(dz.flatten(0, 1), windows)  # (E, W)
    return gradient.view(dz.shape[2], kernel, x.shape[2]).transpose(1, 2)


def of_input(dz: Tensor, weight: Tensor, shape: torch.Size, kernel: int, stride: int) -> Tensor:
    """The gradient (R, S, C) of the input: windows that overlap add up."""
    rows, num_frames, width = shape
    windows = linear(dz, weight.t().contiguous())  # (R, T, W)
    num_strides = max(-(-num_frames // stride), dz.shape[1] + (kernel - 1) // stride)
    dx = dz.new_empty(rows, num_strides, stride * width)  # as many frames as make whole strides
    first = min(stride, kernel) * width  # what the first stride of a window covers
    dx[:, : dz.shape[1], :first] = windows[:, :, :first]
    dx[:, : dz.shape[1], first:] = 0
    dx[:, dz.shape[1] :] = 0
    for number, start in enumerate(range(stride, kernel, stride), start=1):
        taps = windows[:, :, start * width : min(start + stride, kernel) * width]
        dx[:, number : number + dz.shape[1], : taps.shape[2]] += taps
    return dx.view(rows, -1, width)[:, :num_frames]


def _windows(x: Tensor, kernel: int, stride: int) -> Tensor:
    """(R, T, W): the frames that each product sees; a view where they do not overlap."""
    rows, num_frames, width = x.shape
    x = x.contiguous()
    windows = x.as_strided(
        (rows, (num_frames - kernel) // stride + 1, kernel * width), (num_frames * width, stride * width, 1)
    )
    return windows if kernel == stride and num_frames % stride == 0 else windows.contiguous()


def _transposed_product(a: Tensor, b: Tensor) -> Tensor:
    """aᵀ b of (M, E) and (M, W): the gradient of a linear weight, by the faster of two libraries."""
    if not is_convolution_faster(a, b):
        return a.t() @ b
    inputs, outputs = (part.view(1, -1, 1, part.shape[1]).permute(0, 3, 1, 2) for part in (b, a))
    size = (a.shape[1], b.shape[1], 1, 1)
    product: Tensor = conv2d_weight(inputs, size, outputs)  # type: ignore[no-untyped-call]
    return product.reshape(size[:2])
