"""What a recogniser says of a recording before anything is decided: the scores of its symbols at every frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Scored:
    """Log-probabilities (T, V) of a recording's frames."""

    audio: str
    seconds: float
    frame_seconds: float
    log_probs: np.ndarray
