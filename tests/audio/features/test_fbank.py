from __future__ import annotations

from dataclasses import replace

import kaldi_native_fbank as knf
import numpy as np
import pytest
import soxr
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.features.fbank import BEATS, FbankConfig
from sonant.audio.features.front_end import build_front_end
from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths


def features_of(config: FbankConfig, samples: np.ndarray) -> np.ndarray:
    lengths = Lengths(torch.tensor([len(samples)]))
    return build_front_end(config)(torch.from_numpy(samples)[None], lengths)[0][0].numpy()


def kaldi_features(config: FbankConfig, samples: np.ndarray) -> np.ndarray:
    options = knf.FbankOptions()
    frames, mel = options.frame_opts, options.mel_opts
    frames.dither, frames.samp_freq = 0, config.sample_rate
    frames.frame_length_ms, frames.frame_shift_ms = config.frame_length_ms, config.frame_shift_ms
    frames.preemph_coeff, frames.remove_dc_offset = config.preemphasis, config.remove_dc_offset
    frames.window_type = {"hann": "hanning"}.get(config.window, config.window)
    frames.round_to_power_of_two, frames.snip_edges = config.round_to_power_of_two, config.snip_edges
    mel.num_bins, mel.low_freq, mel.high_freq = config.num_mels, config.low_frequency, config.high_frequency
    options.use_energy, options.energy_floor = config.use_energy, config.energy_floor
    options.use_log_fbank, options.use_power = config.use_log, config.use_power
    extractor = knf.OnlineFbank(options)
    extractor.accept_waveform(config.sample_rate, samples * np.float32(config.scale))
    extractor.input_finished()
    rows = [extractor.get_frame(index) for index in range(extractor.num_frames_ready)]
    return np.stack(rows) if rows else np.zeros((0, config.width), np.float32)


def exact_features(samples: np.ndarray) -> np.ndarray:
    """The default config frame by frame in double precision, as Kaldi's documentation describes it."""
    hertz = np.arange(257) * 16000 / 512
    mel, corners = 1127 * np.log(1 + hertz / 700), np.linspace(*(1127 * np.log(1 + np.array([20, 8000]) / 700)), 82)
    rows = []
    for start in range(0, len(samples) - 399, 160):
        frame = samples[start : start + 400].astype(np.float64) * 32768
        frame = frame - frame.mean()
        frame = frame - 0.97 * np.append(frame[0], frame[:-1])
        frame = frame * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)) ** 0.85
        power = np.abs(np.fft.rfft(frame, 512)) ** 2
        bands = [np.interp(mel, corners[band : band + 3], [0, 1, 0]) @ power for band in range(80)]
        rows.append(np.log(np.maximum(bands, np.finfo(np.float32).eps)))
    return np.array(rows)


def room_noise(num_samples: int, sample_rate: int) -> np.ndarray:
    """A hum on an offset in noise: no band is empty, so that Kaldi's single precision is precise enough."""
    time = np.arange(num_samples) / sample_rate
    noise = np.random.default_rng(num_samples).standard_normal(num_samples)
    return (0.05 * noise + 0.2 * np.sin(2 * np.pi * 300 * time) + 0.1).astype(np.float32)


@st.composite
def configs(draw: st.DrawFn) -> FbankConfig:
    sample_rate = draw(st.sampled_from([8000, 16000, 22050, 44100]))
    return FbankConfig(
        sample_rate=sample_rate,
        num_mels=draw(st.sampled_from([3, 23, 40, 64, 80])),
        frame_length_ms=draw(st.sampled_from([20.0, 25.0, 32.0])),
        frame_shift_ms=draw(st.sampled_from([5.0, 10.0, 12.5, 20.0])),
        window=draw(st.sampled_from(["povey", "hamming", "hann", "blackman", "sine", "rectangular"])),
        preemphasis=draw(st.sampled_from([0.0, 0.9, 0.97])),
        remove_dc_offset=draw(st.booleans()),
        # kaldi-native-fbank ends the whole process over an odd number of points
        round_to_power_of_two=draw(st.booleans()) or sample_rate in (22050, 44100),
        snip_edges=draw(st.booleans()),
        low_frequency=draw(st.sampled_from([0.0, 20.0, 100.0])),
        high_frequency=draw(st.sampled_from([0.0, -200.0, 3800.0])),
        use_energy=draw(st.booleans()),
        use_log=draw(st.booleans()),
        use_power=draw(st.booleans()),
        scale=draw(st.sampled_from([1.0, 32768.0])),
    )


@settings(max_examples=60, deadline=None)
@given(config=configs(), num_samples=st.sampled_from([1, 150, 300, 3000, 5017]))
def test_features_are_those_of_kaldi_native_fbank_whatever_the_options(config: FbankConfig, num_samples: int) -> None:
    samples = room_noise(num_samples, config.sample_rate)
    expected = kaldi_features(config, samples)
    np.testing.assert_allclose(features_of(config, samples), expected, atol=1e-3, rtol=0 if config.use_log else 1e-3)


def test_the_energy_of_a_frame_has_a_floor() -> None:
    config = FbankConfig(use_energy=True, energy_floor=1e6)
    quiet = room_noise(800, 16000) * 1e-3
    np.testing.assert_allclose(features_of(config, quiet), kaldi_features(config, quiet), atol=1e-3)
    assert (features_of(config, quiet)[:, 0] == np.float32(np.log(1e6))).all()


def test_telephone_speech_at_16_khz_is_exact_where_kaldi_is_not(voiced) -> None:
    samples = soxr.resample(voiced(1.0, 8000), 8000, 16000).astype(np.float32)  # nothing is left above 4 kHz
    exact = exact_features(samples)
    np.testing.assert_allclose(features_of(FbankConfig(), samples), exact, atol=1e-5)
    assert np.abs(kaldi_features(FbankConfig(), samples) - exact).max() > 1e-2


def test_beats_hears_what_its_authors_gave_it(golden) -> None:
    vectors = golden("beats/beats.vectors")
    waveforms = torch.from_numpy(vectors["waveform"])
    features, lengths = build_front_end(BEATS)(waveforms, Lengths(torch.full((2,), 32000)))
    assert lengths.values.tolist() == [198, 198]
    np.testing.assert_allclose(features.numpy(), vectors["fbank"], atol=1e-3)


@pytest.mark.parametrize(
    ("changes", "field", "word"),
    [
        ({"sample_rate": 0}, "sample_rate", "no sample rate"),
        ({"num_mels": 0}, "num_mels", "at least 1"),
        ({"frame_shift_ms": 0.01}, "frame_shift_ms", "less than a sample"),
        ({"frame_length_ms": 5.0}, "frame_length_ms", "skip samples"),
        ({"high_frequency": 9000.0}, "high_frequency", "8000 Hz"),
        ({"low_frequency": 8000.0}, "low_frequency", "8000 Hz"),
        ({"preemphasis": 1.5}, "preemphasis", "between 0 and 1"),
        ({"dither": -1.0}, "dither", "less than 0"),
        ({"scale": 0.0}, "scale", "positive"),
        ({"energy_floor": 1.0}, "energy_floor", "no effect"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_its_name(changes: dict, field: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as caught:
        replace(FbankConfig(), **changes)
    assert caught.value.where == field
