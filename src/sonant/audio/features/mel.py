"""Mel bands: triangles over the frequencies of a spectrum, as Kaldi, HTK and Slaney draw them.

Shapes: F frequencies of a transform of `fft_size` points (0 to Nyquist), D bands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

MelScale = Literal["htk", "slaney"]
_Scale = Callable[[np.ndarray], np.ndarray]
_SLANEY_BREAK = 1000.0  # Hz: linear below, logarithmic above
_SLANEY_HERTZ = 200 / 3  # Hz a mel, below
_SLANEY_STEP = np.log(6.4) / 27  # of the natural logarithm a mel, above


def kaldi_bands(num_bands: int, *, fft_size: int, sample_rate: int, low: float, high: float) -> np.ndarray:
    """(F, D): triangles with straight sides on the mel axis."""
    corners = _between(_htk_mel(np.array([low, high])), num_bands)
    return _triangles(_htk_mel(_frequencies(fft_size, sample_rate)), corners)


def stft_bands(
    num_bands: int,
    *,
    fft_size: int,
    sample_rate: int,
    low: float,
    high: float,
    scale: MelScale,
    has_equal_areas: bool,
) -> np.ndarray:
    """(F, D): triangles with straight sides on the frequency axis, as torchaudio, librosa and Whisper have them."""
    to_mel, to_hertz = {"htk": (_htk_mel, _htk_hertz), "slaney": (_slaney_mel, _slaney_hertz)}[scale]
    corners = to_hertz(_between(to_mel(np.array([low, high])), num_bands))
    bands = _triangles(_frequencies(fft_size, sample_rate), corners)
    return bands * (2 / (corners[2:] - corners[:-2])) if has_equal_areas else bands


def _frequencies(fft_size: int, sample_rate: int) -> np.ndarray:
    return np.arange(fft_size // 2 + 1) * (sample_rate / fft_size)


def _between(limits: np.ndarray, num_bands: int) -> np.ndarray:
    """The corners of bands of equal width, each reaching over half of its neighbours."""
    low, high = limits.tolist()
    return np.linspace(low, high, num_bands + 2)


def _triangles(places: np.ndarray, corners: np.ndarray) -> np.ndarray:
    left, centre, right = corners[:-2], corners[1:-1], corners[2:]
    rising = (places[:, None] - left) / (centre - left)
    falling = (right - places[:, None]) / (right - centre)
    bands: np.ndarray = np.minimum(rising, falling).clip(0)
    return bands


def _htk_mel(hertz: np.ndarray) -> np.ndarray:
    return 1127 * np.log1p(hertz / 700)


def _htk_hertz(mel: np.ndarray) -> np.ndarray:
    return 700 * np.expm1(mel / 1127)


def _slaney_mel(hertz: np.ndarray) -> np.ndarray:
    above = _SLANEY_BREAK / _SLANEY_HERTZ + np.log(np.maximum(hertz, _SLANEY_BREAK) / _SLANEY_BREAK) / _SLANEY_STEP
    return np.where(hertz < _SLANEY_BREAK, hertz / _SLANEY_HERTZ, above)


def _slaney_hertz(mel: np.ndarray) -> np.ndarray:
    knee = _SLANEY_BREAK / _SLANEY_HERTZ
    above = _SLANEY_BREAK * np.exp(_SLANEY_STEP * (np.maximum(mel, knee) - knee))
    return np.where(mel < knee, mel * _SLANEY_HERTZ, above)
