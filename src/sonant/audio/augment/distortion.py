"""What cheap or broken equipment does to speech: clipping, overdrive, coarse steps, aliases, missing bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from sonant.audio.augment.level import power, with_power
from sonant.audio.augment.ranges import Probability, drawn, drawn_whole
from sonant.audio.augment.reverberation import quick_size
from sonant.base.bounds import Range, WholeRange, Within, check_fields
from sonant.base.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Clipping:
    """The loudest samples, so many percent of those that are not zero, are cut to the limit that the others keep."""

    kind: Literal["clipping"] = "clipping"
    probability: Probability = 1.0
    percent: Annotated[Range, Within(0.01, 99.0)] = (0.5, 20.0)

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        return clip_loudest(samples, drawn(rng, self.percent))


def clip_loudest(samples: np.ndarray, percent: float) -> np.ndarray:
    """Zeros do not count: pauses filled with them would draw the limit of the speech down to nothing."""
    sizes = np.abs(samples[samples != 0])
    if not sizes.size:
        return samples
    limit = np.float32(np.percentile(sizes, 100 - percent))
    return samples.clip(-limit, limit)


@dataclass(frozen=True, kw_only=True)
class TanhDistortion:
    """Overdrive: x → tanh(g·x) at the power of before.

    g = 0.5 / (the percentile 100 - 99·amount of |x|): the more, the more samples reach the bend.
    """

    kind: Literal["tanh_distortion"] = "tanh_distortion"
    probability: Probability = 1.0
    amount: Annotated[Range, Within(0.001, 1.0)] = (0.01, 0.5)

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        bend = float(np.percentile(np.abs(samples), 100 - 99 * drawn(rng, self.amount)))
        return with_power(np.tanh(samples * np.float32(0.5 / (bend + 1e-6))), power(samples))


@dataclass(frozen=True, kw_only=True)
class BitCrush:
    """As few steps as a converter of so many bits has: 2^(bits-1) on each side of zero."""

    kind: Literal["bit_crush"] = "bit_crush"
    probability: Probability = 1.0
    bits: Annotated[WholeRange, Within(2, 16)] = (5, 12)

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        steps = np.float32(2 ** (drawn_whole(rng, self.bits) - 1))
        return np.rint(samples * steps) / steps


@dataclass(frozen=True, kw_only=True)
class Aliasing:
    """Down to a lower rate and up again by straight lines, without the filter that keeps mirror tones out."""

    kind: Literal["aliasing"] = "aliasing"
    probability: Probability = 1.0
    share: Annotated[Range, Within(0.05, 0.95)] = (0.3, 0.9)  # the lower rate, of the recording's own

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        share = drawn(rng, self.share)
        low = between_samples(samples, np.arange(int(samples.size * share) + 1) / share)
        return between_samples(low, np.arange(samples.size) * share)


def between_samples(samples: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Values at fractional places, on the straight line between neighbours; the last one holds beyond the end."""
    before = np.minimum(places.astype(np.int32), samples.size - 1)
    after = np.minimum(before + 1, samples.size - 1)
    share = (places - before).astype(np.float32)
    between: np.ndarray = samples[before] + (samples[after] - samples[before]) * share
    return between


@dataclass(frozen=True, kw_only=True)
class BandStop:
    """A band is missing: a Butterworth band stop, without shift of phase, around a centre drawn evenly in octaves."""

    kind: Literal["band_stop"] = "band_stop"
    probability: Probability = 1.0
    hertz: Annotated[Range, Within(20.0, 20000.0)] = (200.0, 4000.0)  # the centre
    width: Annotated[Range, Within(0.05, 1.99)] = (0.5, 1.5)  # of the band, as a share of the centre
    order: Annotated[int, Within(1, 8)] = 2  # 6 dB per octave each

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        lowest, highest = self.hertz[0], min(self.hertz[1], sample_rate / 2)
        if lowest > highest:
            found = f"a band at {lowest:g} Hz is not heard at {sample_rate} samples a second."
            raise ConfigError("hertz", found, f"Choose a centre below {sample_rate / 2:g} Hz.")
        centre = lowest * (highest / lowest) ** rng.random()
        return stop_band(samples, sample_rate, centre, centre * drawn(rng, self.width), self.order)


def stop_band(samples: np.ndarray, sample_rate: int, centre: float, width: float, order: int) -> np.ndarray:
    """Zero-phase filter with the magnitude of a Butterworth band stop, its half-power points `width` Hz apart."""
    size = quick_size(samples.size + sample_rate // 10)  # the margin keeps the end from leaking into the start
    hertz = np.arange(size // 2 + 1) * (sample_rate / size)
    distance = np.maximum(np.abs(hertz**2 - centre**2), 1e-9)
    gain = 1 / np.sqrt(1 + (width * hertz / distance) ** (2 * order))
    filtered = np.fft.irfft(np.fft.rfft(samples, size) * gain.astype(np.float32), size)
    return filtered[: samples.size].astype(np.float32, copy=False)
