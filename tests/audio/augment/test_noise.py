import numpy as np
import pytest

from sonant.audio.augment.level import power
from sonant.audio.augment.noise import GaussianNoise, Noise, NoiseFloor, add_noise, stretch_of

RATE = 16000


class Sounds(list):
    def read(self, index, sample_rate):
        return self[index]


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def snr(speech, mixed):
    return 10 * np.log10(power(speech) / power(mixed.astype(float) - speech))


@pytest.mark.parametrize("wanted", [-10.0, 0.0, 17.5, 40.0])
def test_the_ratio_of_powers_is_the_one_asked_for(wanted, voiced, rng):
    speech = voiced(2.0)
    noises = Sounds([rng.standard_normal(RATE * 5).astype(np.float32) * 0.3])
    recorded = Noise(corpus="x", snr=(wanted, wanted)).apply(speech, RATE, rng, noises)
    white = GaussianNoise(snr=(wanted, wanted)).apply(speech, RATE, rng)
    assert snr(speech, recorded) == pytest.approx(wanted, abs=0.1)
    assert snr(speech, white) == pytest.approx(wanted, abs=0.1)


def test_ratios_are_drawn_from_the_whole_range(voiced, rng):
    speech = voiced(0.2)
    found = [snr(speech, GaussianNoise(snr=(5.0, 40.0)).apply(speech, RATE, rng)) for _ in range(60)]
    assert 4.9 < min(found) < 10
    assert 35 < max(found) < 40.1


def test_every_recording_of_the_corpus_gets_its_turn(voiced, rng):
    speech = voiced(0.1)
    pitches = Sounds([np.sin(np.arange(4000) * pitch).astype(np.float32) for pitch in (0.1, 0.5, 1.0)])
    noise = Noise(corpus="x", snr=(0.0, 0.0))
    heard = {int(np.abs(np.fft.rfft(noise.apply(speech, RATE, rng, pitches) - speech)).argmax()) for _ in range(30)}
    assert len(heard) == 3


def test_short_noise_goes_round_and_long_noise_starts_anywhere(rng):
    short, long = np.arange(10, dtype=np.float32), np.arange(1000, dtype=np.float32)
    starts = set()
    for _ in range(30):
        looped = stretch_of(short, 35, rng)
        assert np.array_equal(looped, (np.arange(35) + looped[0]) % 10)
        starts.add(looped[0])
        assert np.all(np.diff(stretch_of(long, 35, rng)) == 1)
    assert len(starts) > 5
    assert np.array_equal(stretch_of(long, 1000, rng), long)
    assert {stretch_of(short, 10, rng)[0] for _ in range(50)} == {0.0}
    assert {stretch_of(short, 9, rng)[0] for _ in range(50)} == {0.0, 1.0}


def test_silence_on_either_side_adds_nothing(voiced, rng):
    speech, silence = voiced(0.1), np.zeros(1600, np.float32)
    assert np.array_equal(add_noise(speech, silence, 10.0), speech)
    assert not add_noise(silence, speech, 10.0).any()
    empty = Sounds([np.zeros(0, np.float32)])
    assert np.array_equal(Noise(corpus="x").apply(speech, RATE, rng, empty), speech)


def test_a_noise_floor_has_its_own_level_however_loud_the_speech_is(voiced, rng):
    for speech in (voiced(2.0), voiced(2.0) * 0.01, np.zeros(2 * RATE, np.float32)):
        noisy = NoiseFloor(decibels=(-50.0, -50.0)).apply(speech, RATE, rng)
        assert 10 * np.log10(power(noisy - speech)) == pytest.approx(-50.0, abs=0.1)
