"""Kaldi's filter bank: what wenet, icefall, BEATs and most streaming recognisers hear.

Equal to kaldi-native-fbank as far as that computes exactly; its single precision strays by more than its
last digit where a band is nearly empty, e.g. above 4 kHz in a telephone call resampled to 16 kHz.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sonant.audio.features.framing import Framing
from sonant.audio.features.mel import kaldi_bands
from sonant.audio.features.options import check_bands, check_frames, check_positive, highest_frequency, samples_in
from sonant.audio.features.spectrum import FrameEnergy, Spectrum, waves_and_bands
from sonant.audio.features.window import WindowName, window
from sonant.base.errors import ConfigError

_KALDI_FLOOR = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, kw_only=True)
class FbankConfig:
    """Kaldi's options; the defaults are wenet's."""

    kind: Literal["fbank"] = "fbank"
    sample_rate: int = 16000
    num_mels: int = 80
    frame_length_ms: float = 25.0
    frame_shift_ms: float = 10.0
    window: WindowName = "povey"
    low_frequency: float = 20.0  # Hz
    high_frequency: float = 0.0  # Hz; zero and less count from the highest there is
    dither: float = 0.0  # steps of 16 bits: deviation of the noise added while training, and only then
    preemphasis: float = 0.97
    remove_dc_offset: bool = True
    round_to_power_of_two: bool = True
    snip_edges: bool = True  # else one frame per shift, over a mirrored recording
    use_energy: bool = False  # the frame's own logarithmic energy, before the bands
    energy_floor: float = 0.0  # the least energy of a frame; 0: Kaldi's smallest
    use_log: bool = True
    use_power: bool = True  # else magnitudes
    scale: float = 32768.0  # of samples in [-1, 1]: Kaldi's features are those of 16-bit integers
    mean: float = 0.0  # taken from every feature,
    deviation: float = 1.0  # which is then divided by this

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
        check_positive(scale=self.scale, deviation=self.deviation)
        if not 0 <= self.preemphasis <= 1:
            raise ConfigError(
                "preemphasis", f"{self.preemphasis} is not between 0 and 1.", "Write 0.97, or 0 for none."
            )
        if self.dither < 0:
            raise ConfigError("dither", f"{self.dither} is less than 0.", "Write 0 for none, or e.g. 0.1.")
        if self.energy_floor and not self.use_energy:
            raise ConfigError("energy_floor", "it has no effect without use_energy.", "Leave it out.")

    @property
    def whole_utterance_settings(self) -> tuple[str, ...]:
        """The settings that need an utterance to its end, and so cannot run live."""
        return ()

    @property
    def framing(self) -> Framing:
        return Framing(
            window=samples_in(self.frame_length_ms, self.sample_rate),
            shift=samples_in(self.frame_shift_ms, self.sample_rate),
            edges="cut" if self.snip_edges else "mirrored",
        )

    @property
    def width(self) -> int:
        return self.num_mels + self.use_energy

    @property
    def fft_size(self) -> int:
        num_samples = self.framing.window
        return 1 << (num_samples - 1).bit_length() if self.round_to_power_of_two else num_samples

    def spectrum(self) -> Spectrum:
        high = highest_frequency(self.high_frequency, self.sample_rate)
        bands = kaldi_bands(
            self.num_mels, fft_size=self.fft_size, sample_rate=self.sample_rate, low=self.low_frequency, high=high
        )
        waves, bands = waves_and_bands(self._prepared_frames(), self.fft_size, bands)
        return Spectrum(
            waves=waves,
            bands=bands,
            use_power=self.use_power,
            compression="ln" if self.use_log else "none",
            floor=_KALDI_FLOOR,
            mean=self.mean,
            deviation=self.deviation,
            energy=self._energy() if self.use_energy else None,
        )

    def _energy(self) -> FrameEnergy:
        floor = max(self.energy_floor, _KALDI_FLOOR)
        return FrameEnergy(scale=self.scale, removes_mean=self.remove_dc_offset, floor=floor)

    def _prepared_frames(self) -> np.ndarray:
        """(W, W): what becomes of each sample of a frame on the way to its spectrum."""
        frames = np.eye(self.framing.window) * self.scale
        if self.remove_dc_offset:
            frames = frames - frames.mean(axis=1, keepdims=True)
        previous = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)  # the first sample follows itself
        emphasised = frames - self.preemphasis * previous
        prepared: np.ndarray = emphasised * window(self.window, self.framing.window, is_periodic=False)
        return prepared


BEATS = FbankConfig(num_mels=128, mean=15.41663, deviation=2 * 6.55582)
