"""How long things are: the one arithmetic of strides, and padding as an object.

The functions work on a number, a numpy array and a torch tensor alike; nothing here imports torch
unless it is handed a tensor. Each front end passes its own kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

Count = TypeVar("Count", int, np.ndarray, Any)


def frames_after(num_samples: Count, kernels: Sequence[int], strides: Sequence[int]) -> Count:
    """Frames that a stack of unpadded convolutions gives; an input shorter than its kernel gives none."""
    num_frames = num_samples
    for kernel, stride in zip(kernels, strides, strict=True):
        num_frames = (num_frames - kernel) // stride + 1
        num_frames = num_frames * (num_frames > 0)
    return num_frames


def samples_before(num_frames: int, kernels: Sequence[int], strides: Sequence[int]) -> int:
    """The fewest samples that give this many frames: the inverse of `frames_after`."""
    assert num_frames > 0
    num_samples = num_frames
    for kernel, stride in zip(reversed(kernels), reversed(strides), strict=True):
        num_samples = (num_samples - 1) * stride + kernel
    return num_samples


def frames_needed_by_ctc(labels: Sequence[int]) -> int:
    """A repeated label needs a blank between the two: "1,1,2" needs 4 frames."""
    return len(labels) + sum(a == b for a, b in pairwise(labels))


@dataclass(frozen=True)
class Lengths:
    """The true lengths of the rows of a padded array, in its own unit (samples, frames, tokens)."""

    values: Any  # (B,) integers: numpy array or tensor, on the device of what it describes

    def __len__(self) -> int:
        return len(self.values)

    @property
    def longest(self) -> int:
        return int(self.values.max()) if len(self.values) else 0

    @property
    def total(self) -> int:
        return int(self.values.sum())

    def mask(self, padded: int | None = None) -> Any:
        """(B, padded) booleans, true where the row is real."""
        padded = self.longest if padded is None else padded
        if isinstance(self.values, np.ndarray):
            return np.arange(padded)[None, :] < self.values[:, None]
        import torch

        return torch.arange(padded, device=self.values.device)[None, :] < self.values[:, None]

    def after(self, kernels: Sequence[int], strides: Sequence[int]) -> Lengths:
        """The lengths of the same rows behind a stack of convolutions."""
        return Lengths(frames_after(self.values, kernels, strides))

    def to(self, device: Any) -> Lengths:
        return Lengths(self.values.to(device))

    @property
    def padding_share(self) -> float:
        """Share of the padded array that is not real."""
        cells = len(self) * self.longest
        return 1 - self.total / cells if cells else 0.0
