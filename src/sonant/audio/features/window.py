"""Windows: how much each sample of a frame counts."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

WindowName = Literal["povey", "hamming", "hann", "blackman", "bartlett", "sine", "rectangular"]


def window(name: WindowName, num_samples: int, *, is_periodic: bool) -> np.ndarray:
    """(num_samples,) float64. Kaldi's windows end as they begin; those of an STFT are one period (is_periodic)."""
    assert name in get_args(WindowName), name
    phase = 2 * np.pi * np.arange(num_samples) / max(num_samples - (not is_periodic), 1)
    hann = 0.5 - 0.5 * np.cos(phase)
    shapes: dict[str, np.ndarray] = {
        "povey": hann**0.85,  # Kaldi's own: nearly Hamming, but zero at both ends
        "hamming": 0.54 - 0.46 * np.cos(phase),
        "hann": hann,
        "blackman": 0.42 - 0.5 * np.cos(phase) + 0.08 * np.cos(2 * phase),
        "bartlett": 1 - np.abs(phase / np.pi - 1),
        "sine": np.sin(phase / 2),
        "rectangular": np.ones(num_samples),
    }
    return shapes[name]
