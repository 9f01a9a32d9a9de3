"""Samples that lie as numbers in a column of a dataset."""

from __future__ import annotations

import numpy as np

from sonant.audio.decoders.decoder import RecordingInfo, single_precision


class ArrayDecoder:
    """Samples (N, channels) that are decoded already; whole numbers are taken as parts of their full scale."""

    def __init__(self, samples: np.ndarray, sample_rate: int) -> None:
        if samples.dtype.kind == "i":
            samples = samples * np.float32(2.0 ** (1 - 8 * samples.dtype.itemsize))
        self._samples, self._position = samples, 0
        num_samples, num_channels = samples.shape
        self.info = RecordingInfo(
            sample_rate=sample_rate, num_channels=num_channels, num_samples=num_samples, encoding="array"
        )

    def start_at(self, first: int) -> None:
        self._position = first

    def read(self, num_samples: int) -> np.ndarray:
        part = self._samples[self._position : self._position + num_samples]
        self._position += len(part)
        return single_precision(part)

    def check_end(self) -> None:
        pass

    def close(self) -> None:
        pass
