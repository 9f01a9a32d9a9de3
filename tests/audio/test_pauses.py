"""Segments hold every word whole, leave long silence out, and do not depend on how the sound arrives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.pauses import segments
from sonant.audio.voice_activity import EnergyDetector, WebRtcDetector

RATE, LONGEST, UNIT = 1000, 4000, 40
DETECTOR = EnergyDetector(pause_seconds=0.3)


@st.composite
def talks(draw):
    """Words and pauses, in samples."""
    spans = draw(st.lists(st.tuples(st.integers(20, 1500), st.integers(40, 3000)), min_size=0, max_size=20))
    return spans, draw(st.integers(0, 10**6))


def sound_of(spans, seed):
    rng = np.random.default_rng(seed)
    parts, words, position = [np.zeros(0)], [], 0
    for word, pause in spans:
        parts += [np.zeros(pause), rng.uniform(0.4, 0.6, word) * rng.choice([-1, 1], word)]
        words.append((position + pause, position + pause + word))
        position += pause + word
    return np.concatenate([*parts, np.zeros(700)]).astype(np.float32), words


def joined(stretches):
    """First and last sample of each segment, whose stretches must stand side by side."""
    found, is_open = [], False
    for one in stretches:
        if is_open:
            assert one.first == found[-1][1]
            found[-1] = (found[-1][0], one.first + len(one.samples))
        else:
            found.append((one.first, one.first + len(one.samples)))
        is_open = not one.is_last
    assert not is_open
    return found


@settings(deadline=None)
@given(talks(), st.integers(1, 5000))
def test_every_word_lies_whole_in_one_segment_alone(talk, block):
    sound, words = sound_of(*talk)
    blocks = [sound[at : at + block] for at in range(0, len(sound), block)]
    stretches = list(segments(blocks, RATE, DETECTOR, LONGEST, UNIT))
    for one in stretches:
        np.testing.assert_array_equal(one.samples, sound[one.first : one.first + len(one.samples)])
        assert one.first % UNIT == 0
        assert len(one.samples) <= LONGEST
    found = joined(stretches)
    for first, last in words:
        assert sum(start <= first and last <= end for start, end in found) == 1, (first, last, found)
        assert sum(start < last and first < end for start, end in found) == 1


@settings(deadline=None)
@given(talks(), st.integers(1, 900))
def test_segments_do_not_depend_on_the_blocks(talk, block):
    sound, _ = sound_of(*talk)
    blocks = [sound[at : at + block] for at in range(0, len(sound), block)]
    assert joined(segments(blocks, RATE, DETECTOR, LONGEST)) == joined(segments([sound], RATE, DETECTOR, LONGEST))


def test_long_silence_is_left_out():
    sound, words = sound_of([(500, 20_000), (500, 20_000)], 1)
    found = joined(segments([sound], RATE, DETECTOR, LONGEST))
    assert len(found) == 2
    for (start, end), (first, last) in zip(found, words, strict=True):
        assert (first - start, end - last) == pytest.approx((100, 100), abs=UNIT)


@pytest.mark.parametrize("sound", [np.zeros(0), np.zeros(1), np.zeros(50_000)], ids=len)
def test_silence_has_no_segment(sound):
    assert not list(segments([sound.astype(np.float32)], RATE, DETECTOR, LONGEST))


def test_speech_without_a_pause_is_one_segment_however_long():
    sound, _ = sound_of([(30_000, 500)], 2)
    ((first, last),) = joined(segments([sound], RATE, DETECTOR, LONGEST))
    assert first <= 500
    assert last >= 30_500


def test_the_detector_of_webrtc_cuts_too(voiced):
    speech = [voiced(2.0, seed=number) for number in range(6)]
    sound = np.concatenate([part for one in speech for part in (np.zeros(16000, np.float32), one)])
    found = joined(segments([sound], 16000, WebRtcDetector(pause_seconds=0.3), 5 * 16000))
    assert len(found) >= 3
    assert sum(last - first for first, last in found) < len(sound)
