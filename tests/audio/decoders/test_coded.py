"""What is particular to MP3, Ogg and the kinds that PyAV reads."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from sonant.audio.decoders.quiet import without_chatter
from sonant.audio.kinds import size_of_tag
from sonant.audio.recording import open_recording
from sonant.base.errors import AudioError, DependencyError


def whole(path: object) -> np.ndarray:
    with open_recording(str(path)) as recording:
        return np.concatenate(list(recording.blocks(5000)))


@pytest.mark.parametrize("mode", ["CONSTANT", "VARIABLE"])
def test_an_mp3_without_a_note_of_its_length_is_read_to_its_end(tmp_path, voiced, mode):
    """Half of the sound is quiet: by its first bit rate, a variable one ends too early or too late."""
    sound = np.concatenate([0.001 * voiced(2, 16000), voiced(2, 16000), np.zeros(16000, np.float32), voiced(1, 16000)])
    path = tmp_path / "a.mp3"
    soundfile.write(path, sound, 16000, bitrate_mode=mode)
    expected, content = whole(path), path.read_bytes()
    at = max(content.find(b"Xing"), content.find(b"Info"))
    without_first_frame = content[content.index(content[:2], at) :]
    (tmp_path / "bare.mp3").write_bytes(without_first_frame)
    with open_recording(str(tmp_path / "bare.mp3")) as recording:
        assert recording.info.num_samples is None
    assert abs(len(whole(tmp_path / "bare.mp3")) - len(expected)) <= 3 * 1152
    renamed = content.replace(content[at : at + 4], b"none", 1)  # a first frame that says nothing is sound, silent
    (tmp_path / "none.mp3").write_bytes(renamed)
    assert len(whole(tmp_path / "none.mp3")) >= len(expected)


def test_the_first_frame_of_other_encoders_that_tell_a_length_is_no_sound(make_recording, tmp_path):
    content = Path(make_recording("bare.mp3").path).read_bytes()
    content = content[size_of_tag(content[:10]) :]
    frame_bytes = content.index(content[:2], 4)
    note = content[:4] + bytes(32) + b"VBRI" + bytes(frame_bytes - 40)
    (tmp_path / "bare.mp3").write_bytes(content)
    (tmp_path / "vbri.mp3").write_bytes(note + content)
    np.testing.assert_array_equal(whole(tmp_path / "vbri.mp3"), whole(tmp_path / "bare.mp3"))


def test_an_mp3_that_was_appended_to_is_read_to_its_end(make_recording, tmp_path):
    content = Path(make_recording("cbr.mp3").path).read_bytes()
    (tmp_path / "twice.mp3").write_bytes(content + content)
    once = len(whole(make_recording("cbr.mp3").path))
    assert len(whole(tmp_path / "twice.mp3")) >= 2 * once - 1152


@pytest.mark.parametrize("name", ["cbr.mp3", "a.flac"])
def test_a_tag_before_the_sound_is_passed_over(make_recording, tmp_path, name):
    made = make_recording(name)
    size = 70_000  # a cover picture
    tag = b"ID3\x04\0\0" + bytes((size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127)) + bytes(size)
    (tmp_path / name).write_bytes(tag + Path(made.path).read_bytes())
    np.testing.assert_allclose(whole(tmp_path / name), whole(made.path), atol=1e-6)


def test_nothing_is_written_on_the_screen_by_seeking_in_mp3(make_recording, capfd):
    made = make_recording("vbr.mp3")
    with open_recording(made.path) as recording:
        for first in (30000, 100, 20000):
            recording.read(first, 500)
    assert capfd.readouterr() == ("", "")


def test_what_others_write_on_the_screen_meanwhile_is_not_lost(capfd):
    with without_chatter(True), without_chatter(True):
        os.write(2, b"something else\n[src/libmpg123/layer3.c:1771] error: dequantization failed!\nand more\n")
    assert capfd.readouterr().err == "something else\nand more\n"


def test_several_recordings_in_one_ogg_file_are_refused(make_recording, tmp_path):
    first, second = (Path(make_recording("vorbis.ogg", seconds=s).path).read_bytes() for s in (1.0, 1.5))
    serial = second[14:18]
    (tmp_path / "chained.ogg").write_bytes(first + _with_other_serial(second, serial))
    with pytest.raises(AudioError, match="several recordings stand one after another"):
        whole(tmp_path / "chained.ogg")


def _with_other_serial(content: bytes, serial: bytes) -> bytes:
    (number,) = struct.unpack("<I", serial)
    return content.replace(serial, struct.pack("<I", number ^ 0x55555555))


@pytest.mark.parametrize("name", ["vorbis.ogg", "a.opus", "flac.ogg"])
def test_an_ogg_file_cut_anywhere_inside_a_page_is_refused_at_its_end(make_recording, tmp_path, name):
    content = Path(make_recording(name).path).read_bytes()
    last_page = content.rindex(b"OggS")
    for end in (last_page + 30, (last_page + len(content)) // 2, len(content) - 1):
        (tmp_path / name).write_bytes(content[:end])
        with pytest.raises(AudioError, match="cut short"):
            whole(tmp_path / name)


def test_the_track_of_a_film_is_read_beside_its_pictures(tmp_path, voiced):
    av = pytest.importorskip("av")
    with av.open(str(tmp_path / "film.mp4"), "w") as file:
        pictures = file.add_stream("mpeg4", rate=10, width=64, height=48, pix_fmt="yuv420p")
        sound = file.add_stream("aac", rate=16000, layout="mono")
        for number in range(20):
            picture = av.VideoFrame.from_ndarray(np.full((48, 64, 3), number * 10, np.uint8))
            file.mux(pictures.encode(picture))
        frame = av.AudioFrame.from_ndarray(voiced(2, 16000)[None], "fltp", "mono")
        frame.sample_rate = 16000
        file.mux(sound.encode(frame))
        file.mux((*pictures.encode(None), *sound.encode(None)))
    assert abs(len(whole(tmp_path / "film.mp4")) - 32000) <= 2048
    with av.open(str(tmp_path / "silent.mp4"), "w") as file:
        pictures = file.add_stream("mpeg4", rate=10, width=64, height=48, pix_fmt="yuv420p")
        file.mux(pictures.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8))))
        file.mux(pictures.encode(None))
    with pytest.raises(AudioError, match="no sound track"):
        whole(tmp_path / "silent.mp4")


def test_a_missing_package_is_named_with_its_extra(make_recording, monkeypatch):
    pytest.importorskip("av")
    made = make_recording("a.m4a")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(DependencyError, match=r"sonant\[formats\]"):
        whole(made.path)
