"""Long recordings have every word once, at its time, however they are cut, at any rate, in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from tones import RATE, ToneRecognizer, said, tones_spelling

from sonant.audio.voice_activity import EnergyDetector, WebRtcDetector
from sonant.decoding.decoder import Decoder, SearchConfig
from sonant.inference.transcriber import Failure, Request, Transcriber, TranscriberConfig

WAYS = {
    "whole": {"window_seconds": 1000.0},
    "windows": {"window_seconds": 10.0, "context_seconds": 2.0},
    "many windows": {"window_seconds": 3.0, "context_seconds": 0.7},
    "without context": {"window_seconds": 10.0, "context_seconds": 0.0},
    "pauses": {"detector": EnergyDetector(pause_seconds=0.3)},
    "pauses and windows": {
        "window_seconds": 3.0,
        "context_seconds": 0.7,
        "detector": EnergyDetector(pause_seconds=0.5),
    },
}


def transcriber(**how):
    return Transcriber(ToneRecognizer(), tones_spelling(), TranscriberConfig(**how))


@pytest.mark.parametrize("way", WAYS)
def test_no_word_is_doubled_or_lost_and_each_stands_at_its_time(way):
    samples, words = said(150, seed=1)
    found = transcriber(**WAYS[way]).transcribe(samples, RATE)
    assert found.text == " ".join(text for text, _, _ in words)
    assert [word.text for word in found.words] == [text for text, _, _ in words]
    starts, ends = (np.array([getattr(word, edge) for word in found.words]) for edge in ("start", "end"))
    np.testing.assert_allclose(starts, [start for _, start, _ in words], atol=0.04)
    np.testing.assert_allclose(ends, [end for _, _, end in words], atol=0.06)


def test_a_search_says_the_same_of_passages_and_has_several_answers():
    samples, words = said(60, seed=2)
    config = TranscriberConfig(**WAYS["windows"], num_best=3)
    decoder = Decoder(tones_spelling(), SearchConfig())
    found = Transcriber(ToneRecognizer(), tones_spelling(), config, decoder).transcribe(samples, RATE)
    assert found.text == " ".join(text for text, _, _ in words)
    assert len({one.text for one in found.alternatives}) == 3


def test_the_detector_of_webrtc_loses_no_word():
    samples, words = said(40, seed=3, pause=(0.5, 2.0))
    found = transcriber(detector=WebRtcDetector(pause_seconds=0.4)).transcribe(samples, RATE)
    assert found.text == " ".join(text for text, _, _ in words)


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
@pytest.mark.parametrize("channels", [1, 2])
def test_any_rate_and_any_number_of_channels_say_the_same(rate, channels, tmp_path):
    samples, words = said(20, seed=4, sample_rate=rate)
    soundfile.write(tmp_path / "a.flac", np.stack([samples] * channels, axis=1), rate)
    found = transcriber(**WAYS["windows"]).transcribe(str(tmp_path / "a.flac"))
    assert found.text == " ".join(text for text, _, _ in words)
    assert found.seconds == pytest.approx(len(samples) / rate, abs=1e-3)


def test_each_channel_says_its_own(tmp_path):
    (one, words), (other, others) = said(20, seed=5), said(20, seed=6)
    both = np.stack([np.resize(one, 300_000), np.resize(other, 300_000)], axis=1) * 0
    both[: len(one), 0], both[: len(other), 1] = one[:300_000], other[:300_000]
    soundfile.write(tmp_path / "a.flac", both, RATE)
    requests = [Request(str(tmp_path / "a.flac"), channel=channel) for channel in (0, 1)]
    found = list(transcriber().transcribe_all(requests))
    for answer, spoken in zip(found, (words, others), strict=True):
        inside = [text for text, _, end in spoken if end < 300_000 / RATE]
        assert answer.text.split()[: len(inside)] == inside


def test_recordings_of_all_lengths_side_by_side_keep_their_order(tmp_path):
    """Some fill several batches, some are silent, broken or nothing."""
    expected, requests = [], []
    for number, num_words in enumerate((1, 300, 0, 3, 120, 2)):
        samples, words = said(num_words, seed=number)
        soundfile.write(tmp_path / f"{number}.wav", samples, RATE)
        requests.append(Request(str(tmp_path / f"{number}.wav")))
        expected.append(" ".join(text for text, _, _ in words))
    requests.insert(2, Request(str(tmp_path / "nowhere.wav")))
    for way in ("windows", "pauses"):
        heard = []
        config = {**WAYS[way], "batch_seconds": 8.0}
        found = list(transcriber(**config).transcribe_all(requests, heard.append))
        assert isinstance(found.pop(2), Failure)
        assert [one.text for one in found] == expected
        seconds = sum(one.seconds for one in found)
        assert sum(heard) <= seconds + 1e-6
        assert way == "pauses" or sum(heard) == pytest.approx(seconds)


def test_a_recording_that_is_cut_short_is_a_failure_even_after_hours(tmp_path):
    samples, _ = said(100, seed=7)
    soundfile.write(tmp_path / "a.wav", samples, RATE)
    content = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "a.wav").write_bytes(content[: len(content) * 2 // 3])
    config = {**WAYS["windows"], "batch_seconds": 8.0}
    (found,) = transcriber(**config).transcribe_all([Request(str(tmp_path / "a.wav"))])
    assert isinstance(found, Failure)
    assert "cut short" in str(found.error)


@pytest.mark.parametrize("detector", [None, EnergyDetector(pause_seconds=0.3)], ids=["windows", "pauses"])
def test_hours_of_silence_say_nothing(detector):
    found = transcriber(detector=detector, window_seconds=10.0).transcribe(np.zeros(RATE * 60, np.float32), RATE)
    assert (found.text, found.words, found.seconds) == ("", (), 60.0)


def test_half_precision_says_the_same_as_full():
    samples, words = said(20, seed=8)
    found = transcriber(precision="bf16").transcribe(samples, RATE)
    assert found.text == " ".join(text for text, _, _ in words)


_PEAK = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from tones import ToneRecognizer, tones_spelling
from sonant.audio.voice_activity import EnergyDetector
from sonant.inference.transcriber import Transcriber, TranscriberConfig
detector = EnergyDetector(pause_seconds=0.3) if sys.argv[3] == "pauses" else None
made = Transcriber(ToneRecognizer(), tones_spelling(), TranscriberConfig(detector=detector))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
words = made.transcribe(sys.argv[1]).words
print(len(words), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["windows", "pauses"])
def test_an_hour_needs_no_more_memory_than_a_few_minutes(way, tmp_path):
    """An hour alone is 230 MB as samples."""
    minutes, words = said(600, seed=9)
    with soundfile.SoundFile(tmp_path / "a.wav", "w", RATE, 1) as file:
        times = 3600 * RATE // len(minutes) + 1
        for _ in range(times):
            file.write(minutes)
    command = [sys.executable, "-c", _PEAK, str(tmp_path / "a.wav"), str(Path(__file__).parents[1] / "support"), way]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    count, megabytes = map(int, done.stdout.split())
    assert count == times * len(words)
    assert megabytes < 400
