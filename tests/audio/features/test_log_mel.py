from __future__ import annotations

from dataclasses import replace

import kaldi_native_fbank as knf
import numpy as np
import pytest
import torch

from sonant.audio.features.front_end import build_front_end
from sonant.audio.features.log_mel import U2_LIGHTNING, WHISPER, LogMelConfig
from sonant.audio.features.mel import stft_bands
from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths


def features_of(config: LogMelConfig, samples: np.ndarray) -> torch.Tensor:
    return build_front_end(config)(torch.from_numpy(samples)[None], Lengths(torch.tensor([len(samples)])))[0][0]


def power_of(samples: np.ndarray, window: torch.Tensor, fft_size: int = 400) -> torch.Tensor:
    """(F, T) by torch's own STFT in double precision."""
    waveform = torch.from_numpy(samples).double()
    return torch.stft(waveform, fft_size, 160, window.numel(), window, center=True, return_complex=True).abs() ** 2


def bands_of(num_bands: int, *, scale: str, has_equal_areas: bool) -> torch.Tensor:
    """(F, D) of kaldi-native-fbank's librosa mode."""
    options, frames = knf.MelBanksOptions(), knf.FrameExtractionOptions()
    options.is_librosa, options.num_bins, options.low_freq = True, num_bands, 0
    options.norm = "slaney" if has_equal_areas else ""
    options.use_slaney_mel_scale = scale == "slaney"
    frames.round_to_power_of_two = False
    matrix = np.array(knf.MelBanks(options, frames).get_matrix())
    return torch.from_numpy(matrix.reshape(num_bands, -1).T.copy())


@pytest.mark.parametrize("scale", ["slaney", "htk"])
@pytest.mark.parametrize("has_equal_areas", [True, False])
@pytest.mark.parametrize("num_bands", [40, 80, 128])
def test_bands_are_those_of_librosa(scale: str, has_equal_areas: bool, num_bands: int) -> None:
    expected = bands_of(num_bands, scale=scale, has_equal_areas=has_equal_areas).numpy()
    ours = stft_bands(
        num_bands, fft_size=400, sample_rate=16000, low=0, high=8000, scale=scale, has_equal_areas=has_equal_areas
    )
    np.testing.assert_allclose(ours[: len(expected)], expected, atol=2e-4 * expected.max())


@pytest.mark.parametrize("num_mels", [80, 128])
@pytest.mark.parametrize("num_samples", [16000, 12345])
def test_whisper_hears_its_own_log_mel(voiced, num_mels: int, num_samples: int) -> None:
    samples = voiced(1.0)[:num_samples]
    bands = torch.from_numpy(
        stft_bands(num_mels, fft_size=400, sample_rate=16000, low=0, high=8000, scale="slaney", has_equal_areas=True)
    )
    mel = bands.T @ power_of(samples, torch.hann_window(400, dtype=torch.float64))[:, :-1]
    logarithm = mel.clamp(min=1e-10).log10()
    expected = (torch.maximum(logarithm, logarithm.max() - 8) + 4) / 4
    ours = features_of(LogMelConfig(num_mels=num_mels), samples)
    torch.testing.assert_close(ours, expected.T.float(), atol=1e-5, rtol=0)


def test_padding_to_30_seconds_is_silence_that_counts(voiced) -> None:
    samples = voiced(1.0)
    padded = np.pad(samples, (0, 480000 - len(samples)))
    ours = features_of(WHISPER, samples)
    assert ours.shape == (3000, 80)
    torch.testing.assert_close(ours, features_of(LogMelConfig(), padded), atol=1e-5, rtol=0)
    assert build_front_end(WHISPER).num_frames(31 * 16000) == 3100  # longer ones are not cut


def test_u2_lightning_hears_torchaudios_mel_spectrogram_of_a_normalised_waveform(voiced) -> None:
    samples = voiced(1.3, pitch=200)
    normalised = ((samples - samples.mean()) / np.sqrt(samples.var() + 1e-7)).astype(np.float32)
    bands = bands_of(80, scale="htk", has_equal_areas=False)
    power = power_of(normalised, torch.hamming_window(400, dtype=torch.float64))[: len(bands)]
    expected = torch.log1p(bands.T.double() @ power)
    ours = features_of(U2_LIGHTNING, samples)
    assert ours.shape == (131, 80)  # one more than a frame per shift
    torch.testing.assert_close(ours, expected.T.float(), atol=1e-3, rtol=0)


def test_a_frame_shorter_than_its_transform_stands_in_the_middle_of_it(voiced) -> None:
    config = replace(U2_LIGHTNING, fft_size=512, compression="none", normalize_waveform=False)
    samples = voiced(0.5)
    bands = stft_bands(80, fft_size=512, sample_rate=16000, low=0, high=8000, scale="htk", has_equal_areas=False)
    power = power_of(samples, torch.hamming_window(400, dtype=torch.float64), fft_size=512)
    expected = (torch.from_numpy(bands).T @ power).T.float()
    torch.testing.assert_close(features_of(config, samples), expected, atol=1e-5, rtol=1e-5)


def test_magnitudes_and_the_natural_logarithm_are_to_be_had(voiced) -> None:
    plain = replace(LogMelConfig(), compression="ln", dynamic_range=None, mean=0.0, deviation=1.0)
    samples = voiced(0.3)
    bands = torch.from_numpy(
        stft_bands(80, fft_size=400, sample_rate=16000, low=0, high=8000, scale="slaney", has_equal_areas=True)
    )
    magnitudes = power_of(samples, torch.hann_window(400, dtype=torch.float64))[:, :-1].sqrt()
    expected = (bands.T @ magnitudes).clamp(min=1e-10).log().T.float()
    torch.testing.assert_close(features_of(replace(plain, use_power=False), samples), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"fft_size": 256}, "fft_size"),
        ({"is_centred": False}, "drops_last_frame"),
        ({"floor": 0.0}, "floor"),
        ({"dynamic_range": 0.0}, "dynamic_range"),
        ({"pad_to_seconds": -1.0}, "pad_to_seconds"),
        ({"high_frequency": 9000.0}, "high_frequency"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_its_name(changes: dict, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        replace(LogMelConfig(), **changes)
    assert caught.value.where == field
