"""From one sample rate to another, whole or as it arrives, with the same result to the last bit (soxr, quality HQ)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sonant.base.bounds import Within
from sonant.base.errors import UsageError

SAMPLE_RATES = Within(100, 10_000_000)  # Hz; a header that says more or less is damaged


class Resampler:
    """Resamples a stream of mono sound; however it is chopped, the concatenated output is the same.

    Output lags behind: a push may give nothing, and `finish` gives the rest. In all, N samples become
    N * to_rate / from_rate, rounded.
    """

    def __init__(self, from_rate: int, to_rate: int) -> None:
        for rate in (from_rate, to_rate):
            if rate not in SAMPLE_RATES:  # soxr brings the process down
                problem = f"{rate} Hz is no sample rate of sound; 100 Hz to 10 MHz are."
                raise UsageError("sample_rate", problem, "Correct it.")
        self._stream: Any = None  # none: the rates are the same
        if from_rate != to_rate:
            import soxr

            self._stream = soxr.ResampleStream(from_rate, to_rate, num_channels=1, dtype="float32", quality="HQ")

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Takes samples (N,) float32 and gives those that are ready (M,)."""
        return self._converted(samples, is_last=False)

    def finish(self) -> np.ndarray:
        """The samples that were still under way; nothing can be pushed afterwards."""
        return self._converted(np.empty(0, np.float32), is_last=True)

    def _converted(self, samples: np.ndarray, *, is_last: bool) -> np.ndarray:
        samples = np.ascontiguousarray(samples, np.float32)
        if self._stream is None:
            return samples
        converted: np.ndarray = self._stream.resample_chunk(samples, last=is_last)
        return converted


def resample(samples: np.ndarray, from_rate: int, to_rate: int) -> np.ndarray:
    """Mono samples (N,) at another rate: (N * to_rate / from_rate,) float32."""
    resampler = Resampler(from_rate, to_rate)
    return np.concatenate([resampler.push(samples), resampler.finish()])
