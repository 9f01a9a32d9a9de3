"""The sound of an utterance as a model wants it: one channel, one sample rate, from start to end."""

from __future__ import annotations

import math

import numpy as np

from sonant.audio.recording import open_recording
from sonant.audio.resample import resample
from sonant.base.bounds import Within
from sonant.base.errors import AudioError

_TIMES = Within(0, 1e9)  # seconds; more is no time in a recording


def read_waveform(
    audio: str,
    *,
    start: float = 0.0,
    seconds: float | None = None,
    channel: int | None = None,
    sample_rate: int | None = None,
    native_rate: int | None = None,
) -> tuple[np.ndarray, int]:
    """A stretch of a recording as (num_samples,) float32, and its sample rate.

    `channel` None is the mean of all; `sample_rate` is the one wanted, None the recording's own; `native_rate` is that
    of bare arrays of numbers in datasets. The stretch is shorter where the recording ends.
    """
    if start not in _TIMES or (seconds or 0) not in _TIMES:
        problem = f"{seconds} s from {start} s on are no stretch of a recording."
        raise AudioError(audio, problem, "Correct start and end.")
    with open_recording(audio, sample_rate=native_rate) as recording:
        rate = recording.info.sample_rate
        num_samples = None if seconds is None else sample_at(seconds, rate)
        samples = one_channel(recording.read(sample_at(start, rate), num_samples), channel, audio)
    if sample_rate is None or sample_rate == rate:
        return samples, rate
    return resample(samples, rate, sample_rate), sample_rate


def sample_at(seconds: float, sample_rate: int) -> int:
    """The sample at a time, halves rounded up: the one rule of the whole package."""
    return math.floor(seconds * sample_rate + 0.5)


def one_channel(samples: np.ndarray, channel: int | None, where: str) -> np.ndarray:
    """(N, channels) to (N,): the channel asked for, or the mean of all."""
    num_channels = samples.shape[1]
    if channel is not None and not 0 <= channel < num_channels:
        known = "channel 0 only" if num_channels == 1 else f"channels 0 to {num_channels - 1}"
        raise AudioError(where, f"channel {channel} was asked for, the recording has {known}.", "Correct the channel.")
    if num_channels == 1 or channel is not None:
        return np.ascontiguousarray(samples[:, channel or 0])
    mixed: np.ndarray = samples.mean(axis=1)
    return mixed
