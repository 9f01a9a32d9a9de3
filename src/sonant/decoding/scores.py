"""What a recogniser hands to decoding: log-probabilities (B, T, V), and the true number of frames of each row."""

from __future__ import annotations

import numpy as np

from sonant.base.errors import SonantError
from sonant.base.lengths import Lengths

LEAST = -60.0  # stands for every log-probability below, so that no path is impossible


def check_scores(log_probs: np.ndarray, lengths: Lengths) -> None:
    """Scores must be logarithms of probabilities: neither logits nor NaN."""
    assert log_probs.ndim == 3
    assert len(log_probs) == len(lengths)
    assert lengths.longest <= log_probs.shape[1]
    for row, num_frames in enumerate(lengths.values.tolist()):
        sums = np.exp(log_probs[row, :num_frames].astype(np.float64)).sum(axis=-1)
        for frame in np.flatnonzero(~(np.abs(sums - 1) < 0.01))[:1]:
            problem = f"the probabilities of frame {frame} sum to {sums[frame]:.3g}, but they must sum to 1."
            raise SonantError(f"scores of row {row}", problem, "Give log-probabilities: log_softmax of the logits.")
