"""Norms of frames that lie side by side, forward and backward, in any float type with statistics in float32.

The stack of convolutions computes its own gradients, so these do too.

Shapes: R rows, T frames, E channels.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

_EPSILON = 1e-5  # that of every published checkpoint


class Affine(NamedTuple):
    """What is done with each channel (E,) behind its norm."""

    scale: Tensor | None
    shift: Tensor | None


class ChannelNorm(Protocol):
    def forward(self, z: Tensor, affine: Affine, is_real: Tensor | None) -> tuple[Tensor, Any]:
        """Maps z (R, T, E) to a new tensor of its shape, with the statistics that `backward` needs."""
        ...

    def backward(
        self, gradient: Tensor, z: Tensor, statistics: Any, affine: Affine, is_real: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        """The gradient of z, and those of scale and shift where there are such."""
        ...


class _NoNorm:
    def forward(self, z: Tensor, affine: Affine, is_real: Tensor | None) -> tuple[Tensor, Any]:
        return z.clone(), None

    def backward(
        self, gradient: Tensor, z: Tensor, statistics: Any, affine: Affine, is_real: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        return gradient, []


NO_NORM = _NoNorm()


class LayerNorm:
    """Each frame over its channels."""

    def forward(self, z: Tensor, affine: Affine, is_real: Tensor | None) -> tuple[Tensor, Any]:
        scale, shift = (_as_wanted(parameter, z) for parameter in affine)
        normed, mean, rstd = torch.native_layer_norm(z, z.shape[-1:], scale, shift, _EPSILON)
        return normed.to(z.dtype), (mean, rstd)

    def backward(
        self, gradient: Tensor, z: Tensor, statistics: Any, affine: Affine, is_real: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        scale, shift = (_as_wanted(parameter, z) for parameter in affine)
        dz, of_scale, of_shift = torch.ops.aten.native_layer_norm_backward(
            gradient, z, z.shape[-1:], *statistics, scale, shift, [True, True, True]
        )
        return dz, [of_scale, of_shift]


class TimeNorm:
    """Each channel over the real frames of its utterance: what a group norm of one channel a group does."""

    def forward(self, z: Tensor, affine: Affine, is_real: Tensor | None) -> tuple[Tensor, Any]:
        scale, shift = affine
        assert scale is not None
        assert shift is not None
        wide = z.float()
        mean = _mean(wide, is_real)  # (R, 1, E)
        rstd = (_mean((wide - mean).square_(), is_real) + _EPSILON).rsqrt()
        factor = rstd * scale
        return torch.addcmul(shift - mean * factor, wide, factor).to(z.dtype), (mean, rstd)

    def backward(
        self, gradient: Tensor, z: Tensor, statistics: Any, affine: Affine, is_real: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        mean, rstd = statistics
        gradient = gradient.float()
        unit = (z.float() - mean).mul_(rstd)  # (R, T, E)
        along = gradient * unit
        of_scale, of_shift = along.sum(dim=(0, 1)), gradient.sum(dim=(0, 1))
        means = _mean(along, is_real), _mean(gradient, is_real)
        dz = gradient.sub(means[1]).sub_(unit.mul_(means[0])).mul_(rstd * affine.scale)
        if is_real is not None:
            dz = dz.mul_(is_real)
        return dz.to(z.dtype), [of_scale, of_shift]


def _as_wanted(parameter: Tensor | None, z: Tensor) -> Tensor | None:
    """On a GPU torch's kernel wants parameters in the type of what is normed; on a CPU it mixes them."""
    return parameter if parameter is None or z.device.type == "cpu" else parameter.to(z.dtype)


def _mean(x: Tensor, is_real: Tensor | None) -> Tensor:
    """(R, 1, E): over real frames."""
    if is_real is None:
        return x.mean(dim=1, keepdim=True)
    count = is_real.sum(dim=1, keepdim=True).clamp(min=1)
    return (x * is_real).sum(dim=1, keepdim=True) / count
