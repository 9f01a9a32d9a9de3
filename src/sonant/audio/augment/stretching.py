"""Faster or slower speech at the same pitch: pieces laid closer or wider, each where it continues the one before.

Waveform-similarity overlap-add (Verhelst & Roelands, 1993). A piece is taken from near its due place in the
source, from where it correlates best with the natural continuation of the piece before, and is faded into it.
"""

from __future__ import annotations

import numpy as np

_PIECE, _FADE = 0.03, 0.012  # seconds: from one piece to the next in the result; over which they are faded
_REACH = 0.0075  # seconds that a piece may lie from its due place: together one period of 67 Hz


def stretch(samples: np.ndarray, sample_rate: int, factor: float) -> np.ndarray:
    """The same voice, `factor` times as fast, in max(1, floor(N / factor)) samples.

    A sound too short to be cut into pieces (42 ms) is cut off, or followed by silence.
    """
    num_samples = max(1, int(samples.size / factor))
    hop, fade, reach = (max(1, round(seconds * sample_rate)) for seconds in (_PIECE, _FADE, _REACH))
    if samples.size < hop + fade:
        return fitted(samples, num_samples)
    places = np.arange(0, num_samples, hop)  # of the pieces in the result
    last = samples.size - np.minimum(hop + fade, num_samples - places)  # the source must not end before the result
    due = np.minimum((places * factor).astype(int), last)
    source = fitted(samples, samples.size + hop + fade)
    return _joined(source, _starts(source, due, last, hop, fade, reach), hop, fade)[:num_samples]


def fitted(samples: np.ndarray, num_samples: int) -> np.ndarray:
    """Cut off, or followed by silence, to so many samples."""
    return np.pad(samples[:num_samples], (0, max(0, num_samples - samples.size)))


def _starts(source: np.ndarray, due: np.ndarray, last: np.ndarray, hop: int, fade: int, reach: int) -> np.ndarray:
    """Where in the source each piece begins: as near to `due` as `reach`, and not behind `last`."""
    energies = np.concatenate([[0.0], np.cumsum(np.square(source, dtype=np.float64))])
    energies = energies[fade:] - energies[:-fade]  # of the `fade` samples from each sample on
    silence = 1e-6 * energies.mean() + 1e-20
    starts = due.copy()
    for piece in range(1, len(due)):
        continuation = starts[piece - 1] + hop
        if energies[continuation] <= silence:
            continue
        low, high = max(0, due[piece] - reach), min(last[piece], due[piece] + reach)
        likeness = np.correlate(source[low : high + fade], source[continuation : continuation + fade], "valid")
        starts[piece] = low + np.argmax(likeness / np.sqrt(np.maximum(energies[low : high + 1], silence)))
    return starts


def _joined(source: np.ndarray, starts: np.ndarray, hop: int, fade: int) -> np.ndarray:
    """The pieces one after another, the end of each faded into the beginning of the next."""
    pieces: np.ndarray = source[starts[:, None] + np.arange(hop + fade)]  # (pieces, hop + fade)
    rising = np.square(np.sin(np.pi / 2 * (np.arange(fade) + 0.5) / fade)).astype(np.float32)
    pieces[1:, :fade] = pieces[1:, :fade] * rising + pieces[:-1, hop:] * (1 - rising)
    return pieces[:, :hop].reshape(-1)
