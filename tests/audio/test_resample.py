from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.resample import Resampler, resample
from sonant.base.errors import UsageError

RATES = [8000, 11025, 16000, 22050, 44100, 48000]


def chopped(samples: np.ndarray, from_rate: int, to_rate: int, sizes: list[int]) -> np.ndarray:
    resampler, ready, first = Resampler(from_rate, to_rate), [], 0
    for size in sizes:
        ready.append(resampler.push(samples[first : first + size]))
        first += size
    ready.append(resampler.push(samples[first:]))
    return np.concatenate([*ready, resampler.finish()])


@settings(max_examples=40, deadline=None)
@given(
    from_rate=st.sampled_from(RATES),
    to_rate=st.sampled_from(RATES),
    sizes=st.lists(st.sampled_from([0, 1, 37, 160, 999, 4000]), max_size=30),
    num_samples=st.integers(0, 9000),
)
def test_however_it_is_chopped_the_result_is_that_of_the_whole(from_rate, to_rate, sizes, num_samples):
    samples = np.random.default_rng(num_samples).uniform(-1, 1, num_samples).astype(np.float32)
    whole = resample(samples, from_rate, to_rate)
    np.testing.assert_array_equal(chopped(samples, from_rate, to_rate, sizes), whole)
    assert whole.dtype == np.float32
    assert abs(whole.size - num_samples * to_rate / from_rate) <= 1


def test_one_sample_at_a_time_is_no_different():
    samples = np.random.default_rng(0).uniform(-1, 1, 1500).astype(np.float32)
    np.testing.assert_array_equal(chopped(samples, 44100, 16000, [1] * 1500), resample(samples, 44100, 16000))


def test_the_same_rate_changes_nothing():
    samples = np.random.default_rng(0).uniform(-1, 1, 1500).astype(np.float32)
    np.testing.assert_array_equal(resample(samples, 16000, 16000), samples)


@pytest.mark.parametrize(("from_rate", "to_rate"), [(8000, 16000), (44100, 16000), (16000, 8000), (48000, 11025)])
def test_a_tone_keeps_its_pitch_its_level_and_its_place(from_rate, to_rate):
    seconds = np.arange(from_rate) / from_rate
    tone = np.sin(2 * np.pi * 440 * seconds).astype(np.float32)
    expected = np.sin(2 * np.pi * 440 * np.arange(to_rate) / to_rate)
    inner = slice(to_rate // 20, -to_rate // 20)
    np.testing.assert_allclose(resample(tone, from_rate, to_rate)[inner], expected[inner], atol=1e-3)


def test_what_the_lower_rate_cannot_hold_is_taken_out():
    tone = np.sin(2 * np.pi * 6000 * np.arange(16000) / 16000).astype(np.float32)
    assert np.abs(resample(tone, 16000, 8000)[400:-400]).max() < 1e-3


@pytest.mark.parametrize("rates", [(0, 16000), (16000, 0), (-8000, 16000), (16000, 99), (10_000_001, 16000)])
def test_a_sample_rate_that_cannot_be_is_refused(rates):
    with pytest.raises(UsageError, match="is no sample rate of sound"):
        Resampler(*rates)


@pytest.mark.parametrize("rates", [(100, 10_000_000), (10_000_000, 100)])
def test_the_furthest_rates_are_resampled(rates):
    assert abs(resample(np.zeros(10, np.float32), *rates).size - 10 * rates[1] / rates[0]) <= 1
