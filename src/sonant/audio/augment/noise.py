"""Noise under the speech: recorded noise from a corpus, white noise at a ratio, white noise at a level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import numpy as np

from sonant.audio.augment.level import power
from sonant.audio.augment.ranges import Probability, drawn
from sonant.base.bounds import Range, Within, check_fields

Snr = Annotated[Range, Within(-30.0, 90.0)]  # decibels


class Sounds(Protocol):
    """Noises, or impulse responses: an open corpus of which only the sound matters."""

    def __len__(self) -> int: ...

    def read(self, index: int, sample_rate: int) -> np.ndarray:
        """Mono float32 (N,) at this rate."""
        ...


def add_noise(samples: np.ndarray, noise: np.ndarray, snr: float) -> np.ndarray:
    """The sum, in which the speech has `snr` decibels more mean power than the noise.

    Both powers are means over the whole utterance, pauses included. Without power in either nothing is added.
    """
    speech_power, noise_power = power(samples), power(noise)
    if speech_power <= 0 or noise_power <= 0:
        return samples
    return samples + noise * np.float32((speech_power / noise_power * 10 ** (-snr / 10)) ** 0.5)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """A stretch of one recording of a corpus; a recording shorter than the speech starts anywhere and goes round."""

    kind: Literal["noise"] = "noise"
    probability: Probability = 1.0
    corpus: str
    snr: Snr = (0.0, 30.0)

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator, sounds: Sounds) -> np.ndarray:
        noise = sounds.read(int(rng.integers(len(sounds))), sample_rate)
        snr = drawn(rng, self.snr)
        return add_noise(samples, stretch_of(noise, samples.size, rng), snr) if noise.size else samples


def stretch_of(sound: np.ndarray, num_samples: int, rng: np.random.Generator) -> np.ndarray:
    """So many samples from a random place."""
    if sound.size >= num_samples:
        first = int(rng.integers(sound.size - num_samples, endpoint=True))
        return sound[first : first + num_samples]
    first = int(rng.integers(sound.size))
    return np.resize(np.roll(sound, -first), num_samples)


@dataclass(frozen=True, kw_only=True)
class GaussianNoise:
    """White noise at a ratio to the speech."""

    kind: Literal["gaussian_noise"] = "gaussian_noise"
    probability: Probability = 1.0
    snr: Snr = (5.0, 40.0)

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        snr = drawn(rng, self.snr)
        return add_noise(samples, rng.standard_normal(samples.size, dtype=np.float32), snr)


@dataclass(frozen=True, kw_only=True)
class NoiseFloor:
    """White noise at a level of its own, however loud the speech is, as a cheap recorder adds it."""

    kind: Literal["noise_floor"] = "noise_floor"
    probability: Probability = 1.0
    decibels: Annotated[Range, Within(-120.0, 0.0)] = (-60.0, -36.0)  # root mean square below full scale

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        level = np.float32(10 ** (drawn(rng, self.decibels) / 20))
        noisy: np.ndarray = samples + rng.standard_normal(samples.size, dtype=np.float32) * level
        return noisy
