import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.voice_activity import EnergyDetector, WebRtcDetector, speech_spans
from sonant.base.errors import ConfigError, DependencyError

DETECTORS = [EnergyDetector(), WebRtcDetector()]


@pytest.fixture(scope="module")
def talk(voiced):
    """Speech from 1.0 to 1.8 s and from 2.8 to 3.3 s of 4 s, in faint noise."""

    def made(sample_rate):
        sound = np.random.default_rng(0).standard_normal(4 * sample_rate).astype(np.float32) * 1e-5
        for start, speech in ((1.0, voiced(0.8, sample_rate)), (2.8, voiced(0.5, sample_rate, seed=1))):
            first = int(start * sample_rate)
            sound[first : first + speech.size] += speech
        return sound

    return made


@pytest.mark.parametrize("sample_rate", [8000, 11025, 16000, 44100])
@pytest.mark.parametrize("detector", DETECTORS, ids=lambda one: one.kind)
def test_speech_is_found_where_it_is_at_any_rate(detector, sample_rate, talk):
    spans = np.array(speech_spans(talk(sample_rate), sample_rate, detector)) / sample_rate
    assert spans.shape == (2, 2)
    assert spans == pytest.approx(np.array([[1.0, 1.8], [2.8, 3.3]]), abs=0.25)


def test_energy_finds_the_edges_to_a_frame(talk):
    spans = np.array(speech_spans(talk(16000), 16000)) / 16000
    assert spans == pytest.approx(np.array([[1.0, 1.8], [2.8, 3.3]]), abs=0.021)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda one: one.kind)
def test_there_is_no_speech_in_silence_or_in_nothing(detector):
    assert speech_spans(np.zeros(16000, np.float32), 16000, detector) == []
    assert speech_spans(np.zeros(0, np.float32), 16000, detector) == []


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda one: one.kind)
def test_the_shortest_sounds_are_answered(detector):
    for num_samples in (1, 2, 319, 321):
        spans = speech_spans(np.full(num_samples, 0.3, np.float32), 16000, detector)
        assert all(0 <= first < last <= num_samples for first, last in spans)


def test_what_lies_further_below_the_peak_is_silence():
    steps = np.repeat(np.float32([1.0, 0.1, 0.01, 0.001]), 16000)
    assert speech_spans(steps, 16000, EnergyDetector(decibels_below_peak=30)) == [(0, 32000)]
    assert speech_spans(steps, 16000, EnergyDetector(decibels_below_peak=50)) == [(0, 48000)]


def test_the_last_part_of_a_frame_counts_like_a_whole_one():
    detector = EnergyDetector(decibels_below_peak=3)
    assert speech_spans(np.ones(16010, np.float32), 16000, detector) == [(0, 16010)]


def test_only_a_pause_that_is_long_enough_ends_a_span():
    sound = np.ones(16000, np.float32)
    sound[6400:8000] = 0  # 0.1 s
    assert speech_spans(sound, 16000, EnergyDetector(pause_seconds=0.1)) == [(0, 6400), (8000, 16000)]
    assert speech_spans(sound, 16000, EnergyDetector(pause_seconds=0.2)) == [(0, 16000)]


def test_a_stricter_detector_takes_less_noise_for_speech():
    noise = np.random.default_rng(0).standard_normal(32000).astype(np.float32) * 0.02
    lengths = [
        sum(last - first for first, last in speech_spans(noise, 16000, WebRtcDetector(strictness=strictness)))
        for strictness in (0, 1, 2, 3)
    ]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[3] < lengths[0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.5]), max_size=200), st.integers(1, 40))
def test_spans_are_in_order_apart_and_within_the_sound(levels, repeats):
    samples = np.repeat(np.array(levels, np.float32), repeats)
    detector = EnergyDetector(frame_seconds=0.01, pause_seconds=0.02)
    spans = speech_spans(samples, 1000, detector)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(set(edges))
    assert all(0 <= edge <= samples.size for edge in edges)
    covered = [sample for span in spans for sample in range(*span)]
    assert not np.delete(samples, covered).any()


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "webrtcvad", None)
    with pytest.raises(DependencyError, match=r"sonant\[vad\]"):
        speech_spans(np.ones(1600, np.float32), 16000, WebRtcDetector())


def test_a_setting_out_of_bounds_is_refused():
    with pytest.raises(ConfigError, match="decibels_below_peak"):
        EnergyDetector(decibels_below_peak=-1)
