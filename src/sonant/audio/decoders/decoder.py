"""What every decoder gives, whatever it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True, kw_only=True)
class RecordingInfo:
    """What a recording says of itself before it is decoded."""

    sample_rate: int
    num_channels: int
    num_samples: int | None  # what its header promises; None where it promises nothing, as a streamed WAV does
    encoding: str  # container/coding, e.g. "wav/pcm_16"


def single_precision(samples: np.ndarray) -> np.ndarray:
    """Numbers as float32; what is too large for it becomes infinite, without a warning: validation finds it."""
    with np.errstate(over="ignore", invalid="ignore"):
        return samples.astype(np.float32)


class NotReadableError(Exception):
    """A library does not know this kind of file, and says why; another one may."""


class Decoder(Protocol):
    """Gives the samples of one recording in order, from any position on.

    The samples at a position depend on the recording alone, never on what was read before: what a run read after
    it was resumed is what it would have read.
    """

    info: RecordingInfo

    def start_at(self, first: int) -> None:
        """Makes `first` the next sample to be read; beyond the end there is nothing to read."""
        ...

    def read(self, num_samples: int) -> np.ndarray:
        """The next samples (N, channels) float32; fewer than asked for only at the end."""
        ...

    def check_end(self) -> None:
        """Called when all has been read: refuses a file that shows by itself, and not by `info`, that it was cut."""
        ...

    def close(self) -> None: ...
