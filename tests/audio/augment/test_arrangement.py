import numpy as np
import pytest

from sonant.audio.augment.arrangement import (
    QuietEnds,
    Repeat,
    Reverse,
    TimeMask,
    TimeShift,
    TrimSilence,
    repeat,
    shift,
)

RATE = 16000
COUNT = np.arange(1, 101, dtype=np.float32)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("by", [30, -30, 1, -99])
def test_a_shift_rolls_over_or_lets_silence_in(by):
    assert np.array_equal(shift(COUNT, by, is_rolled=True, fade=0), np.roll(COUNT, by))
    expected = np.roll(COUNT, by)
    expected[slice(0, by) if by > 0 else slice(by, None)] = 0
    assert np.array_equal(shift(COUNT, by, is_rolled=False, fade=0), expected)


def test_a_seam_is_faded_out_and_in_and_nothing_else_is_touched():
    faded, plain = shift(COUNT, 40, is_rolled=True, fade=5), np.roll(COUNT, 40)
    changed = np.flatnonzero(faded != plain)
    assert changed.tolist() == list(range(35, 45))
    assert (faded / plain)[35:45] == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1, 0.1, 0.3, 0.5, 0.7, 0.9])


def test_shifts_stay_within_their_share_of_the_utterance(rng):
    click = np.zeros(1000, np.float32)
    click[500] = 1.0
    one = TimeShift(share=(-0.2, 0.3), fade_seconds=0.0)
    places = [int(one.apply(click, RATE, rng).argmax()) - 500 for _ in range(200)]
    assert -200 <= min(places) < -150
    assert 250 < max(places) <= 300


def test_a_time_mask_is_silent_inside_and_leaves_the_outside_alone(rng):
    for _ in range(50):
        masked = TimeMask(share=(0.1, 0.3), fade_seconds=0.0).apply(COUNT, RATE, rng)
        hidden = np.flatnonzero(masked == 0)
        assert 10 <= hidden.size <= 30
        assert np.all(np.diff(hidden) == 1)
        assert np.array_equal(np.delete(masked, hidden), np.delete(COUNT, hidden))


def test_the_fades_of_a_time_mask_lie_inside_it(rng):
    ones = np.ones(RATE, np.float32)
    masked = TimeMask(share=(0.1, 0.1), fade_seconds=0.005).apply(ones, RATE, rng)
    assert np.sum(masked != 1) == 1600
    assert np.sum(masked == 0) == 1600 - 2 * 80
    assert np.abs(np.diff(masked)).max() < 0.02


def test_reversed_twice_is_the_sound_itself(voiced, rng):
    speech = voiced(0.1)
    once = Reverse().apply(speech, RATE, rng)
    assert np.array_equal(once, speech[::-1])
    assert np.array_equal(Reverse().apply(once, RATE, rng), speech)


def test_a_part_is_heard_again_as_often_as_asked():
    assert repeat(COUNT[:6], 2, 4, 2, 0).tolist() == [1, 2, 3, 4, 3, 4, 3, 4, 5, 6]


def test_what_would_have_followed_is_faded_into_the_repetition():
    again = repeat(COUNT, 10, 30, 1, 4)
    assert again[:30].tolist() == COUNT[:30].tolist()
    rising = np.array([0.125, 0.375, 0.625, 0.875])
    assert again[30:34] == pytest.approx(rising * COUNT[10:14] + (1 - rising) * COUNT[30:34])
    assert again[34:].tolist() == [*COUNT[14:30], *COUNT[30:]]


def test_a_repeated_part_at_the_very_end_is_faded_in_from_silence():
    assert repeat(COUNT[:4], 2, 4, 1, 2) == pytest.approx([1, 2, 3, 4, 0.25 * 3, 0.75 * 4])


def test_repeating_lengthens_within_its_promise_or_not_at_all(voiced, rng):
    speech = voiced(2.0)
    one = Repeat(times=(1, 3), seconds=(0.25, 1.2))
    sizes = [one.apply(speech, RATE, rng).size for _ in range(100)]
    assert min(sizes) >= speech.size + 4000
    assert 4.5 * RATE < max(sizes) <= one.longest(2.0) * RATE
    assert Repeat(keep_length=True).apply(speech, RATE, rng).size == speech.size


def test_silence_at_both_ends_goes_and_that_in_the_middle_stays(voiced, rng):
    quiet = np.zeros(RATE, np.float32)
    speech = np.concatenate([quiet, voiced(0.5), quiet, voiced(0.5), quiet])
    trimmed = TrimSilence(margin_seconds=0.1).apply(speech, RATE, rng)
    assert trimmed.size / RATE == pytest.approx(2.2, abs=0.05)
    assert np.array_equal(trimmed, speech[14400 : 14400 + trimmed.size])


def test_without_any_speech_nothing_is_trimmed(rng):
    silence = np.zeros(RATE, np.float32)
    assert TrimSilence().apply(silence, RATE, rng).size == RATE


def test_quiet_ends_are_as_quiet_and_as_long_as_asked_and_leave_the_speech(voiced, rng):
    speech = voiced(2.0)
    one = QuietEnds(before=(0.25, 0.25), after=(0.5, 0.5), decibels=(-60.0, -60.0))
    found = one.apply(speech, RATE, rng)
    assert np.array_equal(found[RATE // 4 : RATE // 4 + speech.size], speech)
    assert found.size == speech.size + RATE // 4 + RATE // 2
    for quiet in (found[: RATE // 4], found[-RATE // 2 :]):
        assert 20 * np.log10(np.sqrt(np.mean(quiet**2))) == pytest.approx(-60, abs=0.3)


def test_quiet_ends_are_no_longer_than_what_they_surround(rng):
    assert QuietEnds(before=(9.0, 9.0), after=(0.0, 0.0)).apply(np.ones(100, np.float32), RATE, rng).size == 200
