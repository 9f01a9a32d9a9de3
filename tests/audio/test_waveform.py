from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from sonant.audio.resample import resample
from sonant.audio.waveform import one_channel, read_waveform, sample_at
from sonant.base.errors import AudioError, UsageError


@pytest.fixture(scope="module")
def three(tmp_path_factory) -> tuple[str, np.ndarray]:
    """A recording of three channels and its samples."""
    path = str(tmp_path_factory.mktemp("waveform") / "three.wav")
    soundfile.write(path, np.random.default_rng(0).uniform(-0.9, 0.9, (8000, 3)), 8000)
    return path, soundfile.read(path, dtype="float32")[0]


def test_one_channel_is_the_mean_of_all_or_the_one_asked_for(three):
    path, samples = three
    mean, rate = read_waveform(path)
    assert rate == 8000
    assert mean.dtype == np.float32
    np.testing.assert_allclose(mean, samples.astype(np.float64).mean(axis=1), atol=1e-7)
    for channel in range(3):
        np.testing.assert_array_equal(read_waveform(path, channel=channel)[0], samples[:, channel])


@given(start=st.floats(0, 1.2), seconds=st.one_of(st.none(), st.floats(0, 1.2)))
def test_a_stretch_is_the_slice_of_the_whole(three, start, seconds):
    path, samples = three
    mean = read_waveform(path)[0]
    first = sample_at(start, 8000)
    last = None if seconds is None else first + sample_at(seconds, 8000)
    np.testing.assert_array_equal(read_waveform(path, start=start, seconds=seconds)[0], mean[first:last])
    chosen = read_waveform(path, start=start, seconds=seconds, channel=1)[0]
    np.testing.assert_array_equal(chosen, samples[first:last, 1])


@pytest.mark.parametrize("sample_rate", [4000, 8000, 11025, 16000, 48000])
def test_the_sample_rate_is_the_one_asked_for(three, sample_rate):
    samples, rate = read_waveform(three[0], start=0.25, seconds=0.5, sample_rate=sample_rate)
    assert rate == sample_rate
    assert abs(samples.size - sample_rate / 2) <= 1
    np.testing.assert_array_equal(samples, resample(read_waveform(three[0])[0][2000:6000], 8000, sample_rate))


@given(numerator=st.integers(0, 10**7), sample_rate=st.sampled_from([8000, 11025, 16000, 22050, 44100, 48000]))
def test_times_written_to_four_places_name_the_nearest_sample(numerator, sample_rate):
    exact = Fraction(numerator, 10_000) * sample_rate
    assert abs(sample_at(numerator / 10_000, sample_rate) - exact) <= Fraction(1, 2) + Fraction(1, 10**6)


def test_halves_of_samples_are_rounded_up():
    assert [sample_at(x, 2) for x in (0.0, 0.25, 0.5, 0.75, 1.25)] == [0, 1, 1, 2, 3]


@given(st.integers(0, 10**9))
def test_the_time_of_a_sample_names_that_sample(sample):
    for rate in (8000, 16000, 44100):
        assert sample_at(sample / rate, rate) == sample


@pytest.mark.parametrize(
    ("start", "seconds"),
    [(-0.1, 1), (0, -1), (float("nan"), 1), (0, float("nan")), (float("inf"), 1), (0, float("inf")), (1e308, 1)],
)
def test_what_is_no_stretch_of_a_recording_is_refused(three, start, seconds):
    with pytest.raises(AudioError, match="no stretch of a recording"):
        read_waveform(three[0], start=start, seconds=seconds)


def test_a_stretch_may_begin_and_end_behind_the_end(three):
    assert read_waveform(three[0], start=1e9)[0].shape == (0,)
    assert read_waveform(three[0], seconds=1e9)[0].shape == (8000,)
    assert read_waveform(three[0], start=5, seconds=1, sample_rate=16000)[0].shape == (0,)


@pytest.mark.parametrize(("channel", "known"), [(3, "channels 0 to 2"), (-1, "channels 0 to 2")])
def test_a_channel_that_is_not_there_is_refused(three, channel, known):
    with pytest.raises(AudioError, match=known):
        read_waveform(three[0], channel=channel)
    with pytest.raises(AudioError, match="channel 0 only"):
        one_channel(np.zeros((5, 1), np.float32), 1, "a.wav")


def test_a_sample_rate_that_cannot_be_is_refused(three):
    with pytest.raises(UsageError, match="0 Hz is no sample rate"):
        read_waveform(three[0], sample_rate=0)
