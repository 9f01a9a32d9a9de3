from __future__ import annotations

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.audio.streams import LocalFile, Memory, Stream, Window
from sonant.base.errors import AbsentError, AudioError

CONTENT = bytes(range(256)) * 4


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> LocalFile:
    path = tmp_path_factory.mktemp("streams") / "a"
    path.write_bytes(b"before" + CONTENT + b"behind")
    return LocalFile(str(path))


@given(offset=st.integers(0, 1100), count=st.integers(0, 1100))
def test_bytes_are_those_at_the_place_wherever_they_lie(file, offset, count):
    expected = CONTENT[offset : offset + count]
    within = Window(Memory(b"before" + CONTENT + b"behind"), 6, len(CONTENT))
    for content in (Memory(CONTENT), within, Window(file, 6, len(CONTENT)), Window(within, 0, 5000)):
        buffer = bytearray(b"?" * count)
        assert content.size == len(CONTENT)
        assert content.read_at(offset, count) == expected
        assert content.read_into(offset, buffer) == len(expected)
        assert buffer == expected + b"?" * (count - len(expected))


@given(st.lists(st.tuples(st.integers(-50, 1100), st.sampled_from([0, 1, 2]), st.integers(-1, 300)), max_size=8))
def test_a_stream_over_bytes_behaves_like_a_file(steps):
    found, expected = Stream(Memory(CONTENT)), io.BytesIO(CONTENT)
    for offset, whence, count in steps:
        if whence == 0 and offset < 0:
            continue  # where a file in memory refuses to go
        assert found.seek(offset, whence) == expected.seek(offset, whence)
        assert found.read(count) == expected.read(count)
        assert found.tell() == expected.tell()


def test_the_mark_of_bytes_changes_with_the_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one")
    before = LocalFile(str(path)).mark
    assert LocalFile(str(path)).mark == before
    path.write_bytes(b"four")
    assert LocalFile(str(path)).mark != before
    assert Window(LocalFile(str(path)), 0, 2).mark != Window(LocalFile(str(path)), 1, 2).mark


def test_files_that_cannot_be_opened_leave_nothing_behind(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    before = len(os.listdir("/proc/self/fd"))
    for path, error in ((tmp_path, AudioError), (tmp_path / "pipe", AudioError), (tmp_path / "absent", AbsentError)):
        with pytest.raises(error):
            LocalFile(str(path))
    assert len(os.listdir("/proc/self/fd")) == before
