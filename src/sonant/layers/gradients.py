"""What happens to gradients on their way: made smaller, or made zero where there would be none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.scale, None


class _Attached(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        ctx.save_for_backward(*parameters)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return gradients[0], *(torch.zeros_like(parameter) for parameter in ctx.saved_tensors)


def scaled_gradient(x: Tensor, scale: float) -> Tensor:
    """The same values, whose gradient is multiplied: slows the learning of all that made them."""
    if scale == 1 or not x.requires_grad:
        return x
    scaled: Tensor = _Scaled.apply(x, scale)  # type: ignore[no-untyped-call]
    return scaled


def with_zero_gradients(x: Tensor, parameters: Iterable[nn.Parameter]) -> Tensor:
    """The same values; the parameters, which had no part in them, get gradients of zero instead of none.

    Ranks that wait for each other's gradients need one of every parameter in every step, and a parameter
    without part in a micro-batch must not look frozen.
    """
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    if not trainable or not torch.is_grad_enabled():
        return x
    attached: Tensor = _Attached.apply(x, *trainable)  # type: ignore[no-untyped-call]
    return attached
