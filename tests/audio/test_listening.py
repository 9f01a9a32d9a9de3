"""A recording that is read as it comes sounds as one that is read whole."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.listening import waveform_blocks
from sonant.audio.waveform import read_waveform
from sonant.base.errors import AudioError

SECONDS, RATE = 7.3, 22050


@pytest.fixture(scope="module")
def place(tmp_path_factory, voiced) -> str:
    sound = np.stack([voiced(SECONDS, RATE, seed=seed) for seed in (1, 2)], axis=1)
    file = tmp_path_factory.mktemp("sound") / "a.flac"
    soundfile.write(file, sound, RATE)
    return str(file)


@settings(deadline=None, max_examples=25)
@given(
    start=st.floats(0, 9),
    seconds=st.none() | st.floats(0.001, 9),
    channel=st.sampled_from([None, 0, 1]),
    sample_rate=st.sampled_from([None, 8000, 16000, RATE]),
)
def test_the_blocks_are_the_whole(place, start, seconds, channel, sample_rate):
    how = {"start": start, "seconds": seconds, "channel": channel, "sample_rate": sample_rate}
    whole, _ = read_waveform(place, **how)
    np.testing.assert_array_equal(np.concatenate(list(waveform_blocks(place, **how))), whole)


def test_sound_that_is_no_numbers_is_told_with_its_place(tmp_path):
    sound = np.zeros(32000, np.float32)
    sound[20000] = np.nan
    soundfile.write(tmp_path / "a.wav", sound, 16000, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"no numbers.* s from its beginning"):
        list(waveform_blocks(str(tmp_path / "a.wav")))


def test_a_file_that_was_cut_is_told_with_what_is_there(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(48000), 16000)
    (tmp_path / "a.wav").write_bytes((tmp_path / "a.wav").read_bytes()[:-32000])
    with pytest.raises(AudioError, match=r"promises 3\.00 s, 2\.00 s are there"):
        list(waveform_blocks(str(tmp_path / "a.wav")))
