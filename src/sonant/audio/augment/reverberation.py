"""What a place does to speech: recorded impulse responses, and rooms computed by the image method.

Allen & Berkley, "Image method for efficiently simulating small-room acoustics" (1979). We differ in the sign of a
reflection: each turns the pressure over, so that a response carries no constant part and needs no high-pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from sonant.audio.augment.level import power, with_power
from sonant.audio.augment.noise import Sounds
from sonant.audio.augment.ranges import Probability, drawn
from sonant.base.bounds import Range, Within, check_fields

_METRES_PER_SECOND = 343.0
_WALL_DISTANCE = 0.3  # metres that speaker and microphone keep from the walls
_CLOSEST = 0.1  # metres between speaker and microphone
_FACTORS = (8, 9, 10, 12, 15)  # times a power of two: sizes whose Fourier transform is quick

Metres = Annotated[Range, Within(1.0, 50.0)]


@dataclass(frozen=True, kw_only=True)
class ImpulseResponse:
    """The speech as it sounds in a place of which a corpus has the impulse response."""

    kind: Literal["impulse_response"] = "impulse_response"
    probability: Probability = 1.0
    corpus: str

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator, sounds: Sounds) -> np.ndarray:
        return reverberate(samples, sounds.read(int(rng.integers(len(sounds))), sample_rate))


@dataclass(frozen=True, kw_only=True)
class Room:
    """The speech in a box-shaped room, speaker and microphone anywhere in it; all walls absorb alike."""

    kind: Literal["room"] = "room"
    probability: Probability = 1.0
    width: Metres = (3.6, 5.6)
    depth: Metres = (3.6, 5.6)
    height: Metres = (2.4, 3.0)
    absorption: Annotated[Range, Within(0.01, 0.99)] = (0.2, 0.6)  # of the energy, at each reflection
    longest_seconds: Annotated[float, Within(0.01, 2.0)] = 0.5  # of reverberation; computing time grows with its cube

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        size = np.array([drawn(rng, side) for side in (self.width, self.depth, self.height)])
        absorption = drawn(rng, self.absorption)
        speaker, microphone = rng.uniform(_WALL_DISTANCE, size - _WALL_DISTANCE, (2, 3))
        seconds = min(self.longest_seconds, reverberation_seconds(size, absorption))
        return reverberate(samples, room_response(size, speaker, microphone, absorption, seconds, sample_rate))


def reverberate(samples: np.ndarray, response: np.ndarray) -> np.ndarray:
    """The speech behind an impulse response: the direct sound stays where it was, length and power too."""
    if not response.any():
        return samples
    size = quick_size(samples.size + response.size - 1)
    wet = np.fft.irfft(np.fft.rfft(samples, size) * np.fft.rfft(response, size), size)
    delay = int(np.abs(response).argmax())
    return with_power(wet[delay : delay + samples.size].astype(np.float32, copy=False), power(samples))


def quick_size(num_samples: int) -> int:
    """The next size at which a Fourier transform is quick."""
    sizes = (factor << max(0, (-(-num_samples // factor) - 1).bit_length()) for factor in _FACTORS)
    return min(sizes)


def reverberation_seconds(size: np.ndarray, absorption: float) -> float:
    """Until a sound has fallen by 60 dB (Eyring 1930)."""
    width, depth, height = size
    surface = 2 * (width * depth + width * height + depth * height)
    return float(0.161 * size.prod() / (-surface * np.log1p(-absorption)))


def room_response(
    size: np.ndarray, speaker: np.ndarray, microphone: np.ndarray, absorption: float, seconds: float, sample_rate: int
) -> np.ndarray:
    """The images of the speaker in the walls as pulses, the direct one first: at sample 0, of height 1."""
    nearest = max(float(np.linalg.norm(speaker - microphone)), _CLOSEST)
    reach = nearest + seconds * _METRES_PER_SECOND
    squares, gains = np.zeros((1, 1, 1), np.float32), np.ones((1, 1, 1), np.float32)
    for axis in range(3):
        order = np.arange(-int(reach / size[axis]) - 1, int(reach / size[axis]) + 2)
        mirrored = np.where(order % 2, size[axis] - speaker[axis], speaker[axis])
        shape = [-1 if axis == each else 1 for each in range(3)]
        squares = squares + np.square(order * size[axis] + mirrored - microphone[axis]).astype(np.float32).reshape(
            shape
        )
        gains = gains * (-np.sqrt(1 - absorption)) ** np.abs(order).astype(np.float32).reshape(shape)
    distances = np.maximum(np.sqrt(squares), np.float32(nearest)).ravel()
    num_samples = max(1, int(seconds * sample_rate))
    delays = np.rint((distances - np.float32(nearest)) * np.float32(sample_rate / _METRES_PER_SECOND)).astype(np.int32)
    pulses = gains.ravel() * np.float32(nearest) / distances
    return np.bincount(np.minimum(delays, num_samples), pulses, num_samples + 1)[:num_samples].astype(np.float32)
