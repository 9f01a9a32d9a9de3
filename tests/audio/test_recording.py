"""The laws that hold for a recording of any kind: what is read depends on the file and the place alone."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.recording import open_recording
from sonant.base.errors import AbsentError, AudioError


@cache
def whole(path: str) -> np.ndarray:
    with open_recording(path) as recording:
        return np.concatenate(list(recording.blocks(4096)))


def read(path: str, first: int, num_samples: int | None) -> np.ndarray:
    with open_recording(path) as recording:
        return recording.read(first, num_samples)


def assert_equal(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    if tolerance:
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_segment_is_the_slice_of_the_whole(made, data):
    expected = whole(made.path)
    near_the_end = st.integers(0, 5000).map(lambda before: len(expected) - before)
    first = data.draw(st.one_of(st.integers(0, len(expected) + 10), near_the_end))
    num_samples = data.draw(st.one_of(st.none(), st.integers(0, 4000), st.just(10**12)))
    last = None if num_samples is None else first + num_samples
    assert_equal(read(made.path, first, num_samples), expected[first:last], made.kind.tolerance)


@pytest.mark.parametrize("num_samples", [1, 100, 5000])
def test_the_last_samples_are_found_by_seeking(made, num_samples):
    expected = whole(made.path)
    first = len(expected) - num_samples
    assert_equal(read(made.path, first, num_samples + 1000), expected[first:], made.kind.tolerance)


@settings(max_examples=2, deadline=None)
@given(places=st.lists(st.floats(0, 1), min_size=2, max_size=3))
def test_what_is_read_does_not_depend_on_what_was_read_before(made, places):
    firsts = [int(place * len(whole(made.path))) for place in places]
    with open_recording(made.path) as recording:
        found = [recording.read(first, 700) for first in firsts]
        again = np.concatenate(list(recording.blocks(9999)))
    for first, samples in zip(firsts, found, strict=True):
        np.testing.assert_array_equal(samples, read(made.path, first, 700))
    np.testing.assert_array_equal(again, whole(made.path))


@pytest.mark.parametrize("num_samples", [333, 10**6])
def test_blocks_of_any_size_join_to_the_same_whole(made, num_samples):
    with open_recording(made.path) as recording:
        blocks = list(recording.blocks(num_samples))
    assert {len(block) for block in blocks[:-1]} <= {num_samples}
    np.testing.assert_array_equal(np.concatenate(blocks), whole(made.path))


def test_what_a_recording_says_of_itself_is_what_is_decoded(made):
    with open_recording(made.path) as recording:
        info = recording.info
    assert (info.sample_rate, info.num_channels) == (made.kind.rate, 2)
    assert info.num_samples in (None, len(whole(made.path)))


def test_the_sound_is_the_one_that_was_recorded(made):
    found = whole(made.path)
    codec_frame = 4608  # what a coder may add before or behind
    assert abs(len(found) - len(made.sound)) <= (0 if made.kind.correlation >= 0.999 else codec_frame)
    if made.kind.correlation:
        for channel in range(2):
            sound = np.zeros(len(found))
            sound[: len(made.sound)] = made.sound[: len(found), channel]
            shift = _delay(found[:30000, channel], sound[:30000])
            assert np.corrcoef(np.roll(sound, shift), found[:, channel])[0, 1] > made.kind.correlation


def _delay(found: np.ndarray, sound: np.ndarray) -> int:
    """Samples by which a coder without a note of its delay is late."""
    spectrum = np.fft.rfft(found, 65536) * np.conj(np.fft.rfft(sound, 65536))
    return int(np.argmax(np.fft.irfft(spectrum)[:4608]))


@pytest.mark.parametrize(
    ("format", "subtype", "endian"),
    [
        (format, subtype, endian)
        for format in ("WAV", "RF64", "W64", "AIFF", "AU", "CAF", "NIST")
        for endian in ("FILE", "LITTLE", "BIG")
        for subtype in ("PCM_U8", "PCM_S8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW")
        if soundfile.check_format(format, subtype, endian)
    ],
)
def test_plain_samples_are_to_the_bit_those_of_libsndfile(tmp_path, format, endian, subtype):
    path = tmp_path / "a.x"
    random = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    soundfile.write(path, random, 8000, format=format, subtype=subtype, endian=endian)
    expected, _ = soundfile.read(path, dtype="float32", always_2d=True)
    np.testing.assert_array_equal(whole(str(path)), expected)


@pytest.mark.parametrize("name", ["pcm_16.wav", "a.flac", "vorbis.ogg", "cbr.mp3"])
@pytest.mark.parametrize("other", ["a.wav", "a.MP3", "a.Flac", "a.ogg", "a.txt", "a", "._x.wav", "ü #%23.wav"])
def test_a_name_says_nothing_of_what_is_inside(make_recording, tmp_path, name, other):
    made = make_recording(name)
    path = tmp_path / other
    path.write_bytes(Path(made.path).read_bytes())
    np.testing.assert_array_equal(whole(str(path).replace("%", "%25").replace("#", "%23")), whole(made.path))


@pytest.mark.parametrize("name", ["pcm_24.wav", "extensible.wav", "a.flac", "vorbis.ogg", "a.caf"])
def test_all_of_six_channels_are_read(make_recording, name):
    made = make_recording(name, num_channels=6)
    found = whole(made.path)
    assert found.shape == made.sound.shape
    for channel in range(6):
        assert np.corrcoef(found[:, channel], made.sound[:, channel])[0, 1] > 0.97


def test_an_open_recording_may_be_shared_by_processes(make_recording):
    made = make_recording("pcm_16.wav")
    with open_recording(made.path) as recording:
        recording.read(0, 100)
        child = os.fork()
        if child == 0:
            recording.read(20000, 5000)
            os._exit(0)
        os.waitpid(child, 0)
        np.testing.assert_array_equal(recording.read(100, 100), whole(made.path)[100:200])


def test_files_are_closed_when_reading_ends_or_fails(make_recording, tmp_path):
    made, text = make_recording("vorbis.ogg"), tmp_path / "a.wav"
    text.write_text("no sound at all, but text that is long enough to be looked at")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        read(made.path, 100, 100)
        with pytest.raises(AudioError):
            read(str(text), 0, 1)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_segment_before_the_beginning_is_refused(make_recording):
    made = make_recording("pcm_16.wav")
    for first, num_samples in ((-1, 10), (0, -1)):
        with pytest.raises(AudioError, match="before its beginning"):
            read(made.path, first, num_samples)


def test_what_is_no_file_is_named(tmp_path):
    with pytest.raises(AbsentError):
        read(str(tmp_path / "absent.wav"), 0, 1)
    with pytest.raises(AudioError, match="a folder"):
        read(str(tmp_path), 0, 1)
    os.mkfifo(tmp_path / "pipe.wav")
    with pytest.raises(AudioError, match="a pipe"):
        read(str(tmp_path / "pipe.wav"), 0, 1)
    with pytest.raises(AudioError, match="no name of a file"):
        read("a\0.wav", 0, 1)


def test_a_segment_longer_than_what_is_read_at_once_is_the_slice_of_the_whole(tmp_path):
    path = tmp_path / "long.wav"
    soundfile.write(path, np.random.default_rng(0).uniform(-1, 1, 2_500_000), 8000, subtype="PCM_U8")
    expected = whole(str(path))
    for num_samples in (1 << 20, (1 << 20) + 1, 2_200_000, None):
        last = None if num_samples is None else 100 + num_samples
        np.testing.assert_array_equal(read(str(path), 100, num_samples), expected[100:last])
