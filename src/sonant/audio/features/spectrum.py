"""What a frame's samples are multiplied by to become the energies of bands.

Everything that happens to a frame before its spectrum (mean, pre-emphasis, window, scale) is linear, so it is
one matrix with the Fourier transform: a frame becomes features by two matrix products, on any runtime.

Shapes: W samples of a frame, K frequencies that a band looks at, D bands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Compression = Literal["none", "ln", "log10", "log1p"]


@dataclass(frozen=True, kw_only=True)
class FrameEnergy:
    """The logarithm of a frame's own energy, as Kaldi puts it before the bands."""

    scale: float  # of samples
    removes_mean: bool
    floor: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum:
    """From samples to features: waves, squares, bands, a logarithm, and a shift and scale."""

    waves: np.ndarray  # (W, 2K): the real parts of K frequencies, then their imaginary parts
    bands: np.ndarray  # (K, D)
    use_power: bool  # else the root of each power
    compression: Compression
    floor: float  # the least energy that ln and log10 see
    mean: float
    deviation: float
    energy: FrameEnergy | None = None


def waves_and_bands(prepared: np.ndarray, fft_size: int, bands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`prepared` (W, W) holds what becomes of each sample of a frame; frequencies outside every band are left out."""
    used = bands.any(axis=1)
    transformed = np.fft.rfft(prepared, fft_size)[:, used]  # (W, K)
    return np.concatenate([transformed.real, transformed.imag], axis=1), bands[used]
