"""Tensors of which each rank holds a share: put together, and cut up as another one is."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def whole(tensor: Tensor) -> Tensor:
    """Off the graph; put together where each rank holds a share, which all of them must ask for."""
    found: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return found.detach()


def placed_as(value: Tensor, other: Any) -> Tensor:
    """A whole value where another one of its shape lies, in the same shares."""
    value = value.to(other.device)
    if value.shape == other.shape and hasattr(other, "device_mesh"):
        from torch.distributed.tensor import distribute_tensor

        return distribute_tensor(value, other.device_mesh, other.placements)
    return value
