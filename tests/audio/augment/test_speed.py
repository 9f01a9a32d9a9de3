import numpy as np
import pytest

from sonant.audio.augment.level import power
from sonant.audio.augment.speed import Pitch, Speed, Tempo, change_speed
from sonant.audio.augment.stretching import fitted, stretch

RATE = 16000


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def sine(hertz, seconds=2.0):
    return np.sin(2 * np.pi * hertz * np.arange(int(seconds * RATE)) / RATE).astype(np.float32)


def peak_hertz(samples):
    size = 1 << 18
    return np.abs(np.fft.rfft(samples * np.hanning(samples.size), size)).argmax() * RATE / size


@pytest.mark.parametrize("num_samples", [1, 2, 159, 16000, 40001])
@pytest.mark.parametrize("factor", [0.5, 0.8, 0.9, 1.1, 1.37, 2.0])
def test_so_many_times_as_fast_is_so_many_times_as_short(factor, num_samples):
    samples = sine(300, 3.0)[:num_samples]
    expected = max(1, int(num_samples / factor))
    assert change_speed(samples, factor).size == expected
    assert stretch(samples, RATE, factor).size == expected


@pytest.mark.parametrize("factor", [0.9, 1.1, 1.3])
def test_speed_moves_a_tone_and_tempo_leaves_it(factor):
    assert peak_hertz(change_speed(sine(440), factor)) == pytest.approx(440 * factor, rel=2e-3)
    assert peak_hertz(stretch(sine(440), RATE, factor)) == pytest.approx(440, rel=2e-3)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_speed_is_the_same_curve_read_faster(factor):
    played = change_speed(sine(300), factor)
    expected = np.sin(2 * np.pi * 300 * np.arange(played.size) * factor / RATE)
    assert played[1000:-1000] == pytest.approx(expected[1000:-1000], abs=1e-3)


@pytest.mark.parametrize("semitones", [-12.0, -4.0, -0.5, 3.0, 7.0])
def test_pitch_moves_a_tone_by_its_ratio_and_keeps_the_length(semitones, rng):
    shifted = Pitch(semitones=(semitones, semitones)).apply(sine(440), RATE, rng)
    assert shifted.size == 2 * RATE
    assert power(shifted[-2000:]) == pytest.approx(0.5, rel=0.1)
    assert peak_hertz(shifted) == pytest.approx(440 * 2 ** (semitones / 12), rel=2e-3)


@pytest.mark.parametrize("factor", [0.7, 0.9, 1.2, 1.6])
def test_a_stretched_voice_keeps_its_fundamental_its_level_and_its_smoothness(factor, voiced):
    speech = voiced(2.0, pitch=110.0)
    stretched = stretch(speech, RATE, factor)
    assert power(stretched) == pytest.approx(power(speech), rel=0.1)
    assert peak_hertz(stretched) == pytest.approx(110, rel=0.02)
    assert np.abs(np.diff(stretched)).max() < 1.5 * np.abs(np.diff(speech)).max()


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.25])
def test_things_are_heard_when_the_factor_says(factor, rng):
    bursts = np.zeros(3 * RATE, np.float32)
    places = np.array([0.5, 1.3, 2.2])
    for place in (places * RATE).astype(int):
        bursts[place : place + 1600] = rng.standard_normal(1600) * 0.3
    stretched = stretch(bursts, RATE, factor)
    loud = np.flatnonzero(np.abs(stretched) > 0.05)
    starts = loud[np.flatnonzero(np.diff(loud, prepend=-RATE) > RATE // 10)] / RATE
    assert starts == pytest.approx(places / factor, abs=0.03)


def test_a_factor_of_one_gives_the_same_sound_back(voiced):
    speech = voiced(1.0)
    assert stretch(speech, RATE, 1.0) == pytest.approx(speech, abs=1e-6)
    assert np.array_equal(change_speed(speech, 1.0), speech)


def test_the_end_of_the_speech_is_still_speech_and_not_silence(voiced):
    speech = voiced(1.0)
    for factor in (0.5, 0.8, 1.25):
        ending = stretch(speech, RATE, factor)[-160:]
        assert power(ending) > 0.02 * power(speech)


def test_each_factor_gets_its_turn(voiced, rng):
    speech = voiced(0.3)
    sizes = [Speed().apply(speech, RATE, rng).size for _ in range(60)]
    assert set(sizes) == {int(4800 / 0.9), 4800, int(4800 / 1.1)}
    assert min(map(sizes.count, set(sizes))) > 9


def test_tempos_fill_their_range(voiced, rng):
    sizes = np.array([Tempo().apply(voiced(0.3), RATE, rng).size for _ in range(60)]) / 4800
    assert 0.79 < sizes.min() < 0.85
    assert 1.15 < sizes.max() <= 1.25


def test_a_sound_is_fitted_by_cutting_or_by_silence():
    three = np.float32([1, 2, 3])
    assert fitted(three, 2).tolist() == [1, 2]
    assert fitted(three, 5).tolist() == [1, 2, 3, 0, 0]
