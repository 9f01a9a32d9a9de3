"""When things are heard: shifted, masked, reversed, repeated, with quiet around them or without it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from sonant.audio.augment.ranges import Fade, Probability, Share, drawn, drawn_whole, refuse_without_effect
from sonant.audio.augment.stretching import fitted
from sonant.audio.voice_activity import Detector, EnergyDetector, speech_spans
from sonant.base.bounds import Range, WholeRange, Within, check_fields


@dataclass(frozen=True, kw_only=True)
class TimeShift:
    """Later (or earlier, below zero) by a share of the utterance; what is pushed out comes in at the other end."""

    kind: Literal["time_shift"] = "time_shift"
    probability: Probability = 1.0
    share: Annotated[Range, Within(-1.0, 1.0)] = (-0.5, 0.5)
    rollover: bool = True  # false: silence comes in instead
    fade_seconds: Fade = 0.005

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_without_effect("share", self.share == (0.0, 0.0))

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        num_samples = round(drawn(rng, self.share) * samples.size)
        return shift(samples, num_samples, is_rolled=self.rollover, fade=round(self.fade_seconds * sample_rate))


def shift(samples: np.ndarray, num_samples: int, *, is_rolled: bool, fade: int) -> np.ndarray:
    """Moved by so many samples of at most its own length, faded out and in again at the seam."""
    if num_samples == 0:
        return samples
    shifted = np.roll(samples, num_samples)
    seam = num_samples % samples.size
    if not is_rolled:
        pushed_out = slice(0, num_samples) if num_samples > 0 else slice(samples.size + num_samples, None)
        shifted[pushed_out] = 0
    before, after = shifted[max(0, seam - fade) : seam], shifted[seam : seam + fade]
    before *= _rising(before.size)[::-1]
    after *= _rising(after.size)
    return shifted


def _rising(num_samples: int) -> np.ndarray:
    """A straight line from just above 0 to just below 1."""
    return ((np.arange(num_samples, dtype=np.float32) + np.float32(0.5)) / max(1, num_samples)).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class TimeMask:
    """A stretch of the sound is silent; the fades lie inside it."""

    kind: Literal["time_mask"] = "time_mask"
    probability: Probability = 1.0
    share: Share = (0.02, 0.2)  # of the utterance
    fade_seconds: Fade = 0.005

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_without_effect("share", self.share == (0.0, 0.0))

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        width = max(1, round(drawn(rng, self.share) * samples.size))
        first = int(rng.integers(samples.size - width, endpoint=True))
        fade = min(round(self.fade_seconds * sample_rate), width // 2)
        masked = samples.copy()
        masked[first : first + fade] *= _rising(fade)[::-1]
        masked[first + fade : first + width - fade] = 0
        masked[first + width - fade : first + width] *= _rising(fade)
        return masked


@dataclass(frozen=True, kw_only=True)
class Reverse:
    """Backwards."""

    kind: Literal["reverse"] = "reverse"
    probability: Probability = 0.5

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        return samples[::-1].copy()


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """A part is heard again, once or more, as in a stutter or a stuck recording."""

    kind: Literal["repeat"] = "repeat"
    probability: Probability = 1.0
    times: Annotated[WholeRange, Within(1, 20)] = (1, 3)
    seconds: Annotated[Range, Within(0.001, 60.0)] = (0.25, 1.2)  # of the part; at most the utterance
    keep_length: bool = False  # true: what no longer fits at the end is cut off
    fade_seconds: Fade = 0.005

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        width = min(samples.size, max(1, int(drawn(rng, self.seconds) * sample_rate)))
        first = int(rng.integers(samples.size - width, endpoint=True))
        times, fade = drawn_whole(rng, self.times), round(self.fade_seconds * sample_rate)
        repeated = repeat(samples, first, first + width, times, fade)
        return repeated[: samples.size] if self.keep_length else repeated

    def longest(self, seconds: float) -> float:
        """The most that so many seconds can become."""
        return seconds if self.keep_length else seconds + self.times[1] * min(seconds, self.seconds[1])


def repeat(samples: np.ndarray, first: int, last: int, times: int, fade: int) -> np.ndarray:
    """`samples[first:last]` so many times more; what would have followed is faded into each repetition."""
    part, fade = samples[first:last].copy(), min(fade, last - first)
    rising = _rising(fade)
    part[:fade] = part[:fade] * rising + fitted(samples[last : last + fade], fade) * (1 - rising)
    return np.concatenate([samples[:last], *[part] * times, samples[last:]])


@dataclass(frozen=True, kw_only=True)
class TrimSilence:
    """Without the silence before the first and after the last sound of a voice; without any voice, unchanged."""

    kind: Literal["trim_silence"] = "trim_silence"
    probability: Probability = 1.0
    detector: Detector = field(default_factory=EnergyDetector)
    margin_seconds: Annotated[float, Within(0.0, 10.0)] = 0.05  # that stay on both sides

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        spans = speech_spans(samples, sample_rate, self.detector)
        if not spans:
            return samples
        margin = round(self.margin_seconds * sample_rate)
        return samples[max(0, spans[0][0] - margin) : spans[-1][1] + margin]


@dataclass(frozen=True, kw_only=True)
class QuietEnds:
    """Faint noise before and after, as in recordings that nobody has cut: at most as long as the utterance, each."""

    kind: Literal["quiet_ends"] = "quiet_ends"
    probability: Probability = 1.0
    before: Annotated[Range, Within(0.0, 60.0)] = (0.0, 0.5)  # seconds
    after: Annotated[Range, Within(0.0, 60.0)] = (0.0, 0.5)
    decibels: Annotated[Range, Within(-120.0, 0.0)] = (-90.0, -50.0)  # root mean square below full scale

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_without_effect("before and after", self.before == self.after == (0.0, 0.0))

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        level = np.float32(10 ** (drawn(rng, self.decibels) / 20))
        counts = [min(samples.size, int(drawn(rng, side) * sample_rate)) for side in (self.before, self.after)]
        before, after = (rng.standard_normal(count, dtype=np.float32) * level for count in counts)
        return np.concatenate([before, samples, after])

    def longest(self, seconds: float) -> float:
        """The most that so many seconds can become."""
        return seconds + min(seconds, self.before[1]) + min(seconds, self.after[1])
