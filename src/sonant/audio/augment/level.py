"""How loud speech is: gain, gain that drifts, peak normalisation, polarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from sonant.audio.augment.ranges import Probability, drawn, refuse_without_effect
from sonant.base.bounds import Range, Within, check_fields

Decibels = Annotated[Range, Within(-90.0, 90.0)]


def power(samples: np.ndarray) -> float:
    """Mean square over all samples, pauses included. Summed pairwise: a BLAS dot depends on its threads."""
    return float(np.mean(np.square(samples, dtype=np.float64)))


def with_power(samples: np.ndarray, wanted: float) -> np.ndarray:
    """The same sound at another mean power; silence stays silence."""
    found = power(samples)
    return samples * np.float32((wanted / found) ** 0.5) if found > 0 else samples


@dataclass(frozen=True, kw_only=True)
class Gain:
    """Louder or softer as a whole."""

    kind: Literal["gain"] = "gain"
    probability: Probability = 1.0
    decibels: Decibels = (-12.0, 12.0)

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_without_effect("decibels", self.decibels == (0.0, 0.0))

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        return samples * np.float32(10 ** (drawn(rng, self.decibels) / 20))


@dataclass(frozen=True, kw_only=True)
class GainTransition:
    """Louder or softer on the way, as when a speaker turns from the microphone: a straight line in decibels."""

    kind: Literal["gain_transition"] = "gain_transition"
    probability: Probability = 1.0
    decibels: Decibels = (-24.0, 6.0)  # drawn twice: before and after the transition
    seconds: Annotated[Range, Within(0.0, 60.0)] = (0.2, 6.0)  # how long the transition takes

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_without_effect("decibels", self.decibels == (0.0, 0.0))

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        before, after = drawn(rng, self.decibels), drawn(rng, self.decibels)
        num_samples = max(1.0, drawn(rng, self.seconds) * sample_rate)
        first = rng.uniform(-num_samples, samples.size)  # it may have begun before the utterance, or end after it
        return change_gain(samples, before, after, first, num_samples)


def change_gain(samples: np.ndarray, before: float, after: float, first: float, num_samples: float) -> np.ndarray:
    """Gain `before` (dB) until the sample `first`, `after` from `first + num_samples` on, a ramp in between."""
    ramp = ((np.arange(samples.size) - first) / num_samples).clip(0, 1).astype(np.float32)
    decibels = np.float32(before) + np.float32(after - before) * ramp
    changed: np.ndarray = samples * np.exp(decibels * np.float32(np.log(10) / 20))
    return changed


@dataclass(frozen=True, kw_only=True)
class PeakNormalization:
    """The largest sample becomes `peak`, where 1 is full scale; silence stays silence."""

    kind: Literal["peak_normalization"] = "peak_normalization"
    probability: Probability = 1.0
    peak: Annotated[float, Within(1e-3, 1.0)] = 1.0

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        found = np.abs(samples).max()
        return samples * np.float32(self.peak / float(found)) if found > 0 else samples


@dataclass(frozen=True, kw_only=True)
class Polarity:
    """Upside down, as a microphone wired the other way gives it."""

    kind: Literal["polarity"] = "polarity"
    probability: Probability = 0.5

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        return -samples
