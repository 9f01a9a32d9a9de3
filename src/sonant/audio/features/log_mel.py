"""The logarithm of a mel spectrogram, as Whisper and torchaudio make it: frames centred on their time.

The defaults are Whisper's (Radford et al. 2022, https://arxiv.org/abs/2212.04356), without its 30 s of padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sonant.audio.features.framing import Framing
from sonant.audio.features.mel import MelScale, stft_bands
from sonant.audio.features.options import check_bands, check_frames, check_positive, highest_frequency, samples_in
from sonant.audio.features.spectrum import Compression, Spectrum, waves_and_bands
from sonant.audio.features.window import WindowName, window
from sonant.base.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class LogMelConfig:
    """An STFT, its mel bands and their logarithm."""

    kind: Literal["log_mel"] = "log_mel"
    sample_rate: int = 16000
    num_mels: int = 80
    frame_length_ms: float = 25.0
    frame_shift_ms: float = 10.0
    fft_size: int | None = None  # points; empty: the samples of a frame; more: zeros on both sides of it
    window: WindowName = "hann"  # one period of it
    mel_scale: MelScale = "slaney"
    has_equal_areas: bool = True  # wide bands weigh as much as narrow ones
    low_frequency: float = 0.0  # Hz
    high_frequency: float = 0.0  # Hz; zero and less count from the highest there is
    use_power: bool = True  # else magnitudes
    is_centred: bool = True  # else only frames that lie inside the recording
    drops_last_frame: bool = True  # of centred ones: 1 s is 100 frames, not 101
    compression: Compression = "log10"
    floor: float = 1e-10  # the least energy that log10 and ln see
    mean: float = -4.0  # taken from every feature,
    deviation: float = 4.0  # which is then divided by this
    dynamic_range: float | None = 2.0  # of an utterance's features: what lies deeper is lifted; empty: no limit
    normalize_waveform: bool = False  # each utterance to mean 0 and variance 1 beforehand
    pad_to_seconds: float = 0.0  # with silence that counts as recording; Whisper's models want 30

    def __post_init__(self) -> None:
        check_frames(
            sample_rate=self.sample_rate, frame_length_ms=self.frame_length_ms, frame_shift_ms=self.frame_shift_ms
        )
        check_bands(
            sample_rate=self.sample_rate,
            num_mels=self.num_mels,
            low_frequency=self.low_frequency,
            high_frequency=self.high_frequency,
        )
        check_positive(floor=self.floor, deviation=self.deviation)
        if self.dynamic_range is not None:
            check_positive(dynamic_range=self.dynamic_range)
        if self.fft_size is not None and self.fft_size < self._frame_samples:
            problem = f"{self.fft_size} points are fewer than the {self._frame_samples} samples of a frame."
            raise ConfigError("fft_size", problem, "Write at least as many, or leave it out.")
        if self.drops_last_frame and not self.is_centred:
            problem = "it has no effect on frames that are not centred."
            raise ConfigError("drops_last_frame", problem, "Write false.")
        if self.pad_to_seconds < 0:
            raise ConfigError("pad_to_seconds", f"{self.pad_to_seconds} is less than 0.", "Write 0 for no padding.")

    @property
    def whole_utterance_settings(self) -> tuple[str, ...]:
        """The settings that need an utterance to its end, and so cannot run live."""
        needing = {
            "normalize_waveform": self.normalize_waveform,
            "pad_to_seconds": self.pad_to_seconds > 0,
            "dynamic_range": self.dynamic_range is not None,
        }
        return tuple(name for name, is_set in needing.items() if is_set)

    @property
    def framing(self) -> Framing:
        return Framing(
            window=self.fft_size or self._frame_samples,
            shift=samples_in(self.frame_shift_ms, self.sample_rate),
            edges="centred" if self.is_centred else "cut",
            drops_last_frame=self.drops_last_frame,
        )

    @property
    def width(self) -> int:
        return self.num_mels

    @property
    def fewest_samples(self) -> int:
        """Shorter recordings are padded to this."""
        return samples_in(self.pad_to_seconds * 1000, self.sample_rate)

    @property
    def _frame_samples(self) -> int:
        return samples_in(self.frame_length_ms, self.sample_rate)

    def spectrum(self) -> Spectrum:
        fft_size = self.framing.window
        bands = stft_bands(
            self.num_mels,
            fft_size=fft_size,
            sample_rate=self.sample_rate,
            low=self.low_frequency,
            high=highest_frequency(self.high_frequency, self.sample_rate),
            scale=self.mel_scale,
            has_equal_areas=self.has_equal_areas,
        )
        weights = window(self.window, self._frame_samples, is_periodic=True)
        before = (fft_size - len(weights)) // 2
        weights = np.pad(weights, (before, fft_size - len(weights) - before))
        waves, bands = waves_and_bands(np.diag(weights), fft_size, bands)
        return Spectrum(
            waves=waves,
            bands=bands,
            use_power=self.use_power,
            compression=self.compression,
            floor=self.floor,
            mean=self.mean,
            deviation=self.deviation,
        )


WHISPER = LogMelConfig(pad_to_seconds=30.0)
U2_LIGHTNING = LogMelConfig(
    window="hamming",
    mel_scale="htk",
    has_equal_areas=False,
    drops_last_frame=False,
    compression="log1p",
    dynamic_range=None,
    mean=0.0,
    deviation=1.0,
    normalize_waveform=True,
)
