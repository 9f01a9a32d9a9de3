"""How fast and how high a voice is: speed changes both, tempo only the one, pitch only the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from sonant.audio.augment.ranges import Probability, drawn, refuse_without_effect
from sonant.audio.augment.stretching import fitted, stretch
from sonant.base.bounds import Range, Within, check_fields


@dataclass(frozen=True, kw_only=True)
class Speed:
    """A tape played faster or slower: one of the factors, each as likely as another."""

    kind: Literal["speed"] = "speed"
    probability: Probability = 1.0
    factors: Annotated[tuple[float, ...], Within(0.25, 4.0)] = (0.9, 1.0, 1.1)

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_without_effect("factors", set(self.factors) == {1.0})

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        return change_speed(samples, self.factors[int(rng.integers(len(self.factors)))])


@dataclass(frozen=True, kw_only=True)
class Tempo:
    """Somebody who talks faster or slower with the same voice."""

    kind: Literal["tempo"] = "tempo"
    probability: Probability = 1.0
    factors: Annotated[Range, Within(0.25, 4.0)] = (0.8, 1.25)

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_without_effect("factors", self.factors == (1.0, 1.0))

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        return stretch(samples, sample_rate, drawn(rng, self.factors))


@dataclass(frozen=True, kw_only=True)
class Pitch:
    """A higher or lower voice that talks as fast as before; the formants move with it."""

    kind: Literal["pitch"] = "pitch"
    probability: Probability = 1.0
    semitones: Annotated[Range, Within(-12.0, 12.0)] = (-4.0, 4.0)

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_without_effect("semitones", self.semitones == (0.0, 0.0))

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        ratio = 2 ** (drawn(rng, self.semitones) / 12)
        return fitted(change_speed(stretch(samples, sample_rate, 1 / ratio), ratio), samples.size)


def change_speed(samples: np.ndarray, factor: float) -> np.ndarray:
    """Time and pitch together, in max(1, floor(N / factor)) samples."""
    if factor == 1.0:
        return samples
    import soxr

    played: np.ndarray = soxr.resample(samples, factor, 1.0)
    return fitted(played, max(1, int(samples.size / factor)))
