"""A corpus of which only the sound matters: what augmentation takes noises and rooms from."""

from __future__ import annotations

import numpy as np

from sonant.audio.waveform import read_waveform
from sonant.base.errors import ManifestError
from sonant.corpus.manifest import open_corpus


class CorpusSounds:
    """The recordings of a corpus by number, at any rate."""

    def __init__(self, folder: str) -> None:
        self.corpus = open_corpus(folder)

    def __len__(self) -> int:
        return len(self.corpus)

    def read(self, index: int, sample_rate: int) -> np.ndarray:
        one = self.corpus[index]
        if one.audio is None:
            raise ManifestError(one.place, f"'{one.id}' has no recording.", "Name a corpus of sounds.")
        samples, _ = read_waveform(
            one.audio,
            start=one.start,
            seconds=one.seconds,
            channel=one.channel,
            sample_rate=sample_rate,
            native_rate=one.sample_rate,
        )
        return samples
