"""Checks that the configs of front ends share: each says which field is wrong and what it may be."""

from __future__ import annotations

from sonant.base.errors import ConfigError


def samples_in(ms: float, sample_rate: int) -> int:
    """Whole samples, rounded down as Kaldi does (but 16.000001 is 16, and so is 15.999999)."""
    return int(sample_rate * ms / 1000 + 1e-6)


def check_frames(*, sample_rate: int, frame_length_ms: float, frame_shift_ms: float) -> None:
    if sample_rate <= 0:
        raise ConfigError("sample_rate", f"{sample_rate} is no sample rate.", "Write samples per second, e.g. 16000.")
    shift, window = samples_in(frame_shift_ms, sample_rate), samples_in(frame_length_ms, sample_rate)
    if shift < 1:
        raise ConfigError("frame_shift_ms", f"{frame_shift_ms} ms is less than a sample.", "Write e.g. 10.")
    if window < max(2, shift):
        problem = f"{frame_length_ms} ms is less than the shift of {frame_shift_ms} ms, and would skip samples."
        raise ConfigError("frame_length_ms", problem, "Write at least the shift, e.g. 25.")


def check_bands(*, sample_rate: int, num_mels: int, low_frequency: float, high_frequency: float) -> None:
    if num_mels < 1:
        raise ConfigError("num_mels", f"{num_mels} bands are no features.", "Write at least 1, e.g. 80.")
    nyquist, high = sample_rate / 2, highest_frequency(high_frequency, sample_rate)
    if not 0 < high <= nyquist:
        problem = f"{high_frequency} Hz is beyond the {nyquist:g} Hz that {sample_rate} samples a second can hold."
        raise ConfigError("high_frequency", problem, "Write 0 for all of them.")
    if not 0 <= low_frequency < high:
        problem = f"{low_frequency} Hz is not between 0 and the highest frequency, {high:g} Hz."
        raise ConfigError("low_frequency", problem, "Write a lower one, e.g. 20.")


def check_positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise ConfigError(name, f"{value} was found, more than 0 is required.", "Write a positive number.")


def highest_frequency(high_frequency: float, sample_rate: int) -> float:
    """Zero and negative ones count from the highest that the sample rate can hold, as in Kaldi."""
    return high_frequency if high_frequency > 0 else sample_rate / 2 + high_frequency
