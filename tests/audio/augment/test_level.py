import numpy as np
import pytest

from sonant.audio.augment.level import Gain, GainTransition, PeakNormalization, Polarity, change_gain, power, with_power

RATE = 16000


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def decibels(samples):
    return 10 * np.log10(power(samples))


def test_gain_changes_the_level_by_its_decibels_and_no_more_than_the_range(voiced, rng):
    speech = voiced(1.0)
    fixed = Gain(decibels=(-7.0, -7.0)).apply(speech, RATE, rng)
    assert decibels(fixed) - decibels(speech) == pytest.approx(-7.0, abs=1e-3)
    changes = [decibels(Gain().apply(speech, RATE, rng)) - decibels(speech) for _ in range(50)]
    assert -12 <= min(changes) < -8
    assert 8 < max(changes) <= 12


def test_loud_gain_does_not_clip(voiced, rng):
    speech = voiced(0.2)
    loud = Gain(decibels=(20.0, 20.0)).apply(speech, RATE, rng)
    assert loud == pytest.approx(10 * speech)
    assert np.abs(loud).max() > 1


def test_a_gain_transition_is_a_straight_line_in_decibels():
    gains = 20 * np.log10(change_gain(np.ones(1000, np.float32), -20.0, 4.0, first=250, num_samples=500))
    assert gains[:251] == pytest.approx(-20.0, abs=1e-4)
    assert gains[500] == pytest.approx(-8.0, abs=1e-4)
    assert np.diff(gains[251:749]) == pytest.approx(24 / 500, abs=1e-3)
    assert gains[750:] == pytest.approx(4.0, abs=1e-4)


def test_a_transition_keeps_both_levels_within_the_range(rng):
    for _ in range(50):
        gains = 20 * np.log10(GainTransition().apply(np.ones(RATE, np.float32), RATE, rng))
        assert gains.min() >= -24.001
        assert gains.max() <= 6.001
        assert gains.min() < gains.max()


def test_peak_normalisation_brings_the_largest_sample_to_the_peak(voiced, rng):
    speech = voiced(0.5)
    assert np.abs(PeakNormalization(peak=0.8).apply(speech, RATE, rng)).max() == pytest.approx(0.8)
    assert np.abs(PeakNormalization().apply(np.float32([-3.0, 1.0]), RATE, rng)).max() == 1.0


def test_polarity_is_the_same_sound_upside_down(voiced, rng):
    speech = voiced(0.1)
    assert np.array_equal(Polarity().apply(speech, RATE, rng), -speech)


def test_the_power_of_a_sound_is_what_it_is_brought_to(voiced):
    assert power(with_power(voiced(0.3), 0.02)) == pytest.approx(0.02, rel=1e-5)
    assert not with_power(np.zeros(5, np.float32), 0.02).any()
