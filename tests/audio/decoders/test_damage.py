"""Random damage to a recording is refused with a sentence or read as far as it goes: no traceback, crash or hang."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from sonant.audio.recording import open_recording
from sonant.base.errors import AudioError

NUM_TRIALS = 40
LIMIT_SECONDS = 20


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Bytes changed in the header, anywhere, zeroed, cut off, left out or put in."""
    damaged = bytearray(content)
    head = min(len(content), int(rng.choice([16, 64, 256, 1000])))
    match rng.integers(7):
        case 0 | 1:
            for at in rng.integers(head, size=rng.integers(1, 6)):
                damaged[at] = rng.choice([0, 255, 127, 128, rng.integers(256)])
        case 2:
            for at in rng.integers(len(content), size=rng.integers(1, 40)):
                damaged[at] = rng.integers(256)
        case 3:
            at, width = rng.integers(head), int(rng.choice([2, 4, 8]))
            damaged[at : at + width] = bytes([rng.choice([0, 255, 127])]) * width
        case 4:
            del damaged[int(rng.choice([rng.integers(head), rng.integers(len(content))])) :]
        case 5:
            at = rng.integers(len(content))
            del damaged[at : at + rng.integers(1, 300)]
        case 6:
            at = rng.integers(len(content))
            damaged[at:at] = rng.bytes(rng.integers(1, 40))
    return bytes(damaged)


@dataclass
class Heard:
    """What came out of a recording, whole or not."""

    promised: int | None = None  # samples
    found: int = 0
    refusal: AudioError | None = None


def hear(path: str) -> Heard:
    heard = Heard()
    try:
        with open_recording(path) as recording:
            heard.promised = recording.info.num_samples
            for block in recording.blocks(5000):
                assert block.dtype == np.float32
                assert block.shape[1] == recording.info.num_channels
                heard.found += len(block)
    except AudioError as error:
        heard.refusal = error
    return heard


def read_everything(path: str, rng: np.random.Generator) -> None:
    heard = hear(path)
    assert heard.refusal is None or is_a_sentence(heard.refusal, path)
    with suppress(AudioError), open_recording(path) as recording:
        recording.read(int(rng.integers(20000)), int(rng.integers(5000)))
        recording.read(15000, None)


def is_a_sentence(error: AudioError, where: str) -> bool:
    """Place, what was found, what to do: in one line each."""
    is_one_line = "\n" not in str(error)
    return error.where == where and error.problem.endswith(".") and bool(error.action) and is_one_line


@pytest.mark.slow
def test_random_damage_never_ends_in_a_traceback_or_ends_the_process(made, tmp_path):
    if made.kind.seconds > 10:
        return  # damage to a long recording is damage to a short one, only slower
    content, rng = Path(made.path).read_bytes()[:60_000], np.random.default_rng(len(made.kind.name))
    for number in range(NUM_TRIALS):
        (tmp_path / f"{number}").write_bytes(damaged(content, rng))
    report, child = tmp_path / "report", os.fork()
    if child == 0:  # a crash in a library must not take the test with it
        _read_all(tmp_path, report)
    _, status = os.waitpid(child, 0)
    assert status == 0, report.read_text()[-3000:]


def _read_all(folder: Path, report: Path) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIMIT_SECONDS)
    warnings.simplefilter("error", RuntimeWarning)
    try:
        for number in range(NUM_TRIALS):
            report.write_text(f"the process ended at damage {number}")
            read_everything(str(folder / f"{number}"), np.random.default_rng(number))
    except BaseException:
        report.write_text(f"damage {number}: {traceback.format_exc()}")
        sys.stdout.flush()
        os._exit(1)
    os._exit(0)


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_recording_cut_in_the_middle_gives_less_than_it_promises_or_is_refused(made, tmp_path, share):
    content = Path(made.path).read_bytes()
    path = tmp_path / made.kind.name
    path.write_bytes(content[: int(share * len(content))])
    heard = hear(str(path))
    if made.kind.name.startswith(("streamed", "bare")):  # which promise nothing
        assert heard.found < len(made.sound)
    else:
        assert heard.refusal or heard.found < heard.promised


@pytest.mark.parametrize(
    ("content", "problem", "action"),
    [
        (b"", "the file is empty.", "Copy or record it again"),
        (b"RIFF", "the file ends inside its header.", "Copy or record it again"),
        (b"RIFF\xff\0\0\0WAVE", "the wav header leads to no samples", "Copy or record it again"),
        (b"a recording of my voice\n", "this is text, not audio: it begins with 'a recording of my voice'.", "Replace"),
        ("\ufeffGrüße an alle".encode(), "this is text, not audio: it begins with 'Grüße an alle'.", "Replace"),
        ("Grüße an alle".encode("utf-16"), "this is text, not audio: it begins with 'Grüße an alle'.", "Replace"),
        (b"<!DOCTYPE html><html><body>404</body>", "this is text, not audio", "Download it again: a server sent"),
        (b"<?xml version='1.0'?><Error><Code>NoSuchKey", "this is text, not audio", "Download it again"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "this is an image", "Replace it"),
        (b"\xff\xd8\xff\xe0" + bytes(40), "this is an image", "Replace it"),
        (b"%PDF-1.7\n" + bytes(40), "this is a PDF document", "Replace it"),
        (b"PK\x03\x04" + bytes(40), "this is a zip archive", "Name a member: archive.zip#member"),
        (b"PAR1" + bytes(40), "this is a Parquet file", "Name a row and a column"),
        (bytes(257) + b"ustar" + bytes(300), "this is a tar archive", "Name a member"),
        (b"\x1f\x8b\x08" + bytes(40), "this is compressed with gzip", "Unpack it."),
        (b"\x00\x05\x16\x07" + bytes(40), "this is a note that macOS keeps beside a file", "Remove it."),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a pointer of Git LFS", "git lfs pull"),
        (b"\x93NUMPY\x01\0v\0{'descr'" + bytes(40), "this is a numpy array, which has no sample rate", "Write it as"),
        (b"\0BFM \x04\x01\0\0\0" + bytes(40), "this is a Kaldi matrix of features", "Name the archive of waveforms"),
        (bytes(5000), "it begins with zeros and has no header.", "Restore it"),
        (b"\x01\x02\x03\x04" * 20, "its first bytes (01 02 03 04 01 02 03 04)", "Convert it to WAV or FLAC."),
    ],
)
def test_what_is_no_recording_is_named_as_what_it_is(tmp_path, content, problem, action):
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    refusal = hear(str(path)).refusal
    assert refusal.where == str(path)
    assert problem in refusal.problem
    assert action in refusal.action


def test_a_pointer_to_other_places_is_text_and_is_not_followed(tmp_path):
    """What libav would take for a playlist, and open the files and addresses in it."""
    for number, text in enumerate(("#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "ffconcat version 1.0\nfile a.wav\n")):
        path = tmp_path / f"{number}.m4a"
        path.write_text(text)
        assert "this is text" in hear(str(path)).refusal.problem
