from __future__ import annotations

import io
import os
import re

import pytest

from sonant.base import progress
from sonant.base.progress import Progress


class Terminal(io.StringIO):
    """A stream that people look at."""

    def isatty(self) -> bool:
        return True


def work(stream: io.StringIO, **options: object) -> str:
    with Progress("decoding", stream=stream, **options) as bar:
        for number in range(5):
            bar.advance(note=f"file {number}")
    return stream.getvalue()


@pytest.fixture(autouse=True)
def drawn_always(monkeypatch):
    monkeypatch.setattr(progress, "_REDRAW_SECONDS", 0)
    monkeypatch.delenv("NO_PROGRESS", raising=False)


def test_nothing_is_written_where_no_person_looks():
    assert work(io.StringIO(), total=5) == ""


def test_nothing_is_written_where_it_is_not_wanted(monkeypatch):
    monkeypatch.setenv("NO_PROGRESS", "1")
    assert work(Terminal(), total=5) == ""


def test_a_terminal_shows_one_line_and_is_left_clean():
    written = work(Terminal(), total=5, unit="files")
    assert "\n" not in written
    assert written.count("decoding") == 5
    assert "5/5 files" in written
    assert "file 4" in written
    assert written.endswith("\r\x1b[K")


def test_the_line_is_redrawn_ten_times_a_second_at_most(monkeypatch):
    monkeypatch.setattr(progress, "_REDRAW_SECONDS", 0.1)
    stream = Terminal()
    with Progress("decoding", total=100_000, stream=stream) as bar:
        for _ in range(20_000):
            bar.advance()
        seconds = bar._drawn - bar.started
    assert stream.getvalue().count("decoding") <= 1 + seconds / 0.1


def test_the_line_is_never_wider_than_the_terminal(monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((30, 5)))
    stream = Terminal()
    with Progress("decoding", total=10, unit="files", stream=stream) as bar:
        bar.advance(note="a name that is longer than any terminal is wide " * 3)
    assert all(len(line) < 30 for line in re.split(r"\r\x1b\[K", stream.getvalue()))


def test_an_error_in_the_work_leaves_the_line_clean_and_comes_through():
    def failing() -> None:
        with Progress("decoding", stream=stream) as bar:
            bar.advance()
            raise KeyError

    stream = Terminal()
    with pytest.raises(KeyError):
        failing()
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("total", "done", "seconds", "line"),
    [
        (40, 10, 30, "decoding  [█████···············]  10/40 files  1:30 left"),
        (40, 0, 5, "decoding  0/40 files  0:05"),
        (None, 1234, 3725, "decoding  1,234 files  1:02:05"),
        (0, 0, 0, "decoding  0/0 files  0:00"),
        (4, 6, 10, "decoding  [████████████████████]  6/4 files  0:00 left"),
    ],
)
def test_the_line_says_how_far_it_has_come_and_how_long_it_will_take(total, done, seconds, line):
    bar = Progress("decoding", total=total, unit="files", stream=io.StringIO())
    bar.advance(done)
    assert bar.line(seconds) == line
    assert bar.line(seconds, "a.wav") == f"{line}  a.wav"
