"""Where somebody speaks: by energy alone, or by the detector of WebRTC.

for first, last in speech_spans(samples, 16000):
    speech = samples[first:last]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from sonant.audio.resample import resample
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import DependencyError

_WEBRTC_RATES = (8000, 16000, 32000, 48000)

Pause = Annotated[float, Within(0.0, 60.0)]


@dataclass(frozen=True, kw_only=True)
class EnergyDetector:
    """Sound is what lies at most so far below the loudest frame: right where the background is quiet."""

    kind: Literal["energy"] = "energy"
    decibels_below_peak: Annotated[float, Within(0.0, 200.0)] = 60.0
    frame_seconds: Annotated[float, Within(0.001, 1.0)] = 0.02
    pause_seconds: Pause = 0.1  # a shorter pause does not end a span

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class WebRtcDetector:
    """A voice is what the Gaussian mixtures of WebRTC take for one; needs the extra `vad`."""

    kind: Literal["webrtc"] = "webrtc"
    strictness: Literal[0, 1, 2, 3] = 2  # 3 lets the least noise pass, and the least speech
    frame_milliseconds: Literal[10, 20, 30] = 30
    pause_seconds: Pause = 0.1

    def __post_init__(self) -> None:
        check_fields(self)


Detector = EnergyDetector | WebRtcDetector


def speech_spans(samples: np.ndarray, sample_rate: int, detector: Detector = EnergyDetector()) -> list[tuple[int, int]]:
    """First and last sample (the last one excluded) of each stretch of speech, in order; none in silence."""
    if not samples.size:
        return []
    match detector:
        case EnergyDetector():
            num_samples, is_speech = _by_energy(samples, sample_rate, detector)
        case WebRtcDetector():
            num_samples, is_speech = _by_webrtc(samples, sample_rate, detector)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_speech, [0]]))).reshape(-1, 2)
    spans = (np.rint(edges * num_samples).astype(int)).clip(0, samples.size)
    return _without_pauses(spans, round(detector.pause_seconds * sample_rate))


def _by_energy(samples: np.ndarray, sample_rate: int, detector: EnergyDetector) -> tuple[float, np.ndarray]:
    """Samples a frame, and whether each frame is speech."""
    num_samples = max(1, round(detector.frame_seconds * sample_rate))
    starts = np.arange(0, samples.size, num_samples)
    energies = np.add.reduceat(np.square(samples, dtype=np.float64), starts)
    powers = energies / np.minimum(num_samples, samples.size - starts)
    threshold = powers.max() * 10 ** (-detector.decibels_below_peak / 10)
    return num_samples, (powers > 0) & (powers >= threshold)


def _by_webrtc(samples: np.ndarray, sample_rate: int, detector: WebRtcDetector) -> tuple[float, np.ndarray]:
    try:
        import webrtcvad
    except ImportError as error:
        raise DependencyError.for_extra("webrtcvad-wheels", "vad", "Voice activity detection by WebRTC") from error
    rate = sample_rate if sample_rate in _WEBRTC_RATES else 16000
    frames = _frames_of_int16(resample(samples, sample_rate, rate), rate * detector.frame_milliseconds // 1000)
    vad: Any = webrtcvad.Vad(detector.strictness)
    is_speech = np.array([vad.is_speech(frame.tobytes(), rate) for frame in frames], bool)
    return sample_rate * detector.frame_milliseconds / 1000, is_speech


def _frames_of_int16(samples: np.ndarray, num_samples: int) -> np.ndarray:
    """(frames, num_samples), silence behind the end."""
    padded = np.pad(samples, (0, -samples.size % num_samples))
    return (padded * 32768).clip(-32768, 32767).astype("<i2").reshape(-1, num_samples)


def _without_pauses(spans: np.ndarray, shortest_pause: int) -> list[tuple[int, int]]:
    """Spans closer than that are one."""
    joined: list[tuple[int, int]] = []
    for first, last in spans.tolist():
        if joined and first - joined[-1][1] < shortest_pause:
            joined[-1] = (joined[-1][0], last)
        elif last > first:
            joined.append((first, last))
    return joined
