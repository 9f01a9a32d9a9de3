"""Arithmetic that no half precision may touch: a model in bfloat16 hears the same features.

Tables are float64. Autocast, TF32 and quantisers leave float64 alone, and it makes features so exact that live,
batched and exported ones agree where single precision differs (0.2 to 0.5 in a logarithm above 4 kHz in telephone
speech resampled to 16 kHz; kaldi-native-fbank differs as much from exact values).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn


class FullPrecision(nn.Module):
    """A module whose tables follow the model to every device, but never to another precision."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> FullPrecision:
        super()._apply(lambda table: table.to(fn(table).device), recurse)  # type: ignore[no-untyped-call]
        return self

    def keep_table(self, name: str, values: np.ndarray) -> None:
        """A constant that follows from the config, so that no checkpoint holds it."""
        self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(values, np.float64)), persistent=False)
