"""One line that says how far long work has come: for people at a terminal, silent everywhere else."""

from __future__ import annotations

import os
import shutil
import sys
import time
from types import TracebackType
from typing import TextIO

_REDRAW_SECONDS = 0.1


class Progress:
    """`with Progress("decoding", total=40, unit="files") as bar: bar.advance()`; an unknown total counts up."""

    def __init__(self, label: str, total: float | None = None, unit: str = "", stream: TextIO | None = None) -> None:
        self.label, self.total, self.unit = label, total, unit
        self.stream = stream or sys.stderr
        self.is_shown = self.stream.isatty() and "NO_PROGRESS" not in os.environ
        self.done = 0.0
        self.started = self._drawn = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def advance(self, amount: float = 1.0, note: str = "") -> None:
        """Adds to what is done; `note` is shown behind it."""
        self.done += amount
        now = time.monotonic()
        if self.is_shown and now - self._drawn >= _REDRAW_SECONDS:
            self._drawn = now
            width = shutil.get_terminal_size().columns
            self.stream.write("\r\x1b[K" + self.line(now - self.started, note)[: width - 1])
            self.stream.flush()

    def line(self, seconds: float, note: str = "") -> str:
        """What stands on the screen after so many seconds."""
        count = f"{self.done:,.0f}" if self.total is None else f"{self.done:,.0f}/{self.total:,.0f}"
        parts = [self.label, f"{count} {self.unit}".rstrip()]
        if self.total and self.done:
            share = min(self.done / self.total, 1.0)
            filled = round(share * 20)
            parts.insert(1, f"[{'█' * filled}{'·' * (20 - filled)}]")
            parts.append(f"{clock(seconds / share - seconds)} left")
        else:
            parts.append(clock(seconds))
        return "  ".join([*parts, note] if note else parts)


def clock(seconds: float) -> str:
    """Minutes and seconds, hours where there are some."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
