"""Cepstral mean and variance normalisation: every feature with mean 0 and variance 1, of a corpus or of an utterance.

Shapes: B utterances, T frames, D features.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from sonant.audio.cmvn import LEAST_VARIANCE, CmvnStatistics
from sonant.audio.features.precision import FullPrecision
from sonant.base.lengths import Lengths


class GlobalCmvn(FullPrecision):
    """The corpus's own mean and deviation, kept with the weights under wenet's names."""

    mean: Tensor  # (D,)
    istd: Tensor  # (D,)

    def __init__(self, mean: np.ndarray, istd: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(np.array(mean, np.float32)))
        self.register_buffer("istd", torch.from_numpy(np.array(istd, np.float32)))

    @classmethod
    def of(cls, statistics: CmvnStatistics) -> GlobalCmvn:
        return cls(statistics.mean, statistics.istd)

    @classmethod
    def unset(cls, width: int) -> GlobalCmvn:
        """Changes nothing until weights are loaded into it."""
        return cls(np.zeros(width), np.ones(width))

    def forward(self, features: Tensor, lengths: Lengths | None = None) -> Tensor:
        """Maps (B, T, D) to the same; padded frames become 0 where lengths say which they are."""
        features = (features.float() - self.mean) * self.istd
        return features if lengths is None else _without_padding(features, lengths)


class UtteranceCmvn(nn.Module):
    """Each utterance's own mean and deviation, over its own frames."""

    def __init__(self, *, use_variance: bool = True) -> None:
        super().__init__()
        self.use_variance = use_variance

    def forward(self, features: Tensor, lengths: Lengths) -> Tensor:
        """Maps (B, T, D) to the same; padded frames become 0."""
        counts = lengths.values.clamp(min=1).view(-1, 1, 1)
        exact = _without_padding(features.double(), lengths)
        exact = _without_padding(exact - exact.sum(dim=1, keepdim=True) / counts, lengths)
        if self.use_variance:
            variance = exact.square().sum(dim=1, keepdim=True) / counts  # (B, 1, D)
            exact = exact / variance.clamp(min=LEAST_VARIANCE).sqrt()
        return exact.float()


def statistics_of(features: Tensor, lengths: Lengths) -> CmvnStatistics:
    """Those of a padded batch (B, T, D), on any device: what is gathered over a corpus."""
    exact = _without_padding(features.double(), lengths)
    sums, squares = exact.sum(dim=(0, 1)), exact.square().sum(dim=(0, 1))
    return CmvnStatistics(sums.cpu().numpy(), squares.cpu().numpy(), lengths.total)


def _without_padding(features: Tensor, lengths: Lengths) -> Tensor:
    return features.masked_fill(~lengths.mask(features.shape[1]).unsqueeze(2), 0)
