import numpy as np
import pytest

from sonant.audio.augment.level import power
from sonant.audio.augment.reverberation import (
    ImpulseResponse,
    Room,
    quick_size,
    reverberate,
    reverberation_seconds,
    room_response,
)

RATE = 16000
SIZE, SPEAKER, MICROPHONE = np.array([5.0, 4.0, 3.0]), np.array([1.0, 1.5, 1.2]), np.array([3.0, 2.2, 1.6])


def response(absorption=0.3, seconds=0.3):
    return room_response(SIZE, SPEAKER, MICROPHONE, absorption, seconds, RATE)


def test_the_convolution_is_the_exact_one_of_speech_and_response(voiced):
    speech, tail = voiced(0.2), np.float32([1.0, 0.0, -0.5, 0.25])
    wet = reverberate(speech, tail)
    exact = np.convolve(speech.astype(float), tail)[: speech.size]
    assert wet == pytest.approx(exact * np.sqrt(power(speech) / power(exact)), abs=1e-5)


def test_the_delay_of_a_response_is_taken_out_and_level_and_length_stay():
    speech = np.random.default_rng(0).standard_normal(8000).astype(np.float32)
    delayed = np.concatenate([np.zeros(300), [0.01, 1.0], 0.02 * np.ones(200)]).astype(np.float32)
    wet = reverberate(speech, delayed)
    likeness = np.correlate(wet, speech[1000:5000], "valid")
    assert wet.size == speech.size
    assert power(wet) == pytest.approx(power(speech), rel=1e-4)
    assert int(likeness.argmax()) == 1000


def test_a_single_pulse_and_an_empty_response_leave_the_speech_as_it_is(voiced):
    speech = voiced(0.2)
    assert reverberate(speech, np.float32([0, 0, 3.0])) == pytest.approx(speech, abs=1e-5)
    assert reverberate(speech, np.zeros(0, np.float32)) is speech
    assert reverberate(speech, np.zeros(9, np.float32)) is speech


def test_the_direct_sound_comes_first_and_is_the_strongest():
    pulses = response()
    assert pulses[0] == pytest.approx(1.0)
    assert np.abs(pulses[1:]).max() < 1


def test_a_shorter_response_is_the_beginning_of_a_longer_one():
    assert np.array_equal(response(seconds=0.1), response(seconds=0.3)[:1600])


def test_the_first_reflections_are_where_and_as_strong_as_geometry_says():
    pulses, direct = response(absorption=0.3), np.linalg.norm(SPEAKER - MICROPHONE)
    for axis, wall in [(0, 0.0), (1, 0.0), (2, 0.0), (0, 5.0), (1, 4.0), (2, 3.0)]:
        image = SPEAKER.copy()
        image[axis] = 2 * wall - image[axis]
        distance = np.linalg.norm(image - MICROPHONE)
        sample = round((distance - direct) * RATE / 343.0)
        assert pulses[sample] == pytest.approx(-np.sqrt(0.7) * direct / distance, rel=1e-4), (axis, wall)


@pytest.mark.parametrize("absorption", [0.2, 0.4, 0.6])
def test_the_energy_decays_as_fast_as_the_absorption_says(absorption):
    expected = reverberation_seconds(SIZE, absorption)
    energy = np.cumsum(np.square(response(absorption, expected).astype(float))[::-1])[::-1]  # Schroeder's integral
    decay = 10 * np.log10(energy / energy[0])
    first, last = (int(np.argmax(decay < level)) for level in (-5, -25))
    assert (last - first) / RATE * 3 == pytest.approx(expected, rel=0.35)


def test_absorbing_walls_reverberate_shorter():
    assert reverberation_seconds(SIZE, 0.2) == pytest.approx(0.161 * 60 / (94 * 0.2231), rel=1e-3)
    assert reverberation_seconds(SIZE, 0.6) < reverberation_seconds(SIZE, 0.2)


def test_rooms_differ_from_utterance_to_utterance_and_keep_the_length(voiced):
    speech = voiced(0.3)
    one, other = (Room().apply(speech, RATE, np.random.default_rng(seed)) for seed in (1, 2))
    assert one.size == other.size == speech.size
    assert np.abs(one - other).max() > 0.01


def test_the_smallest_room_with_speaker_and_microphone_in_one_place_is_finite(voiced):
    place = np.array([0.5, 0.5, 0.5])
    pulses = room_response(np.ones(3), place, place, 0.5, 0.05, RATE)
    assert np.isfinite(pulses).all()
    smallest = Room(width=(1.0, 1.0), depth=(1.0, 1.0), height=(1.0, 1.0))
    assert np.isfinite(smallest.apply(voiced(0.1), 8000, np.random.default_rng(0))).all()


def test_a_response_comes_from_the_corpus_at_the_rate_of_the_speech(voiced):
    class Rooms:
        def __init__(self):
            self.rates = []

        def __len__(self):
            return 1

        def read(self, index, sample_rate):
            self.rates.append(sample_rate)
            return np.float32([0.1, 1.0, 0.5])

    speech = voiced(0.1, 8000)
    rooms = Rooms()
    wet = ImpulseResponse(corpus="x").apply(speech, 8000, np.random.default_rng(0), rooms)
    assert rooms.rates == [8000]
    assert wet == pytest.approx(reverberate(speech, np.float32([0.1, 1.0, 0.5])))


@pytest.mark.parametrize("num_samples", [1, 2, 7, 8, 9, 1000, 1025, 175999, 176001])
def test_a_quick_size_is_large_enough_and_not_much_larger(num_samples):
    size = quick_size(num_samples)
    assert num_samples <= size <= max(8, num_samples * 1.25)
    for prime in (2, 3, 5):
        while size % prime == 0:
            size //= prime
    assert size == 1
