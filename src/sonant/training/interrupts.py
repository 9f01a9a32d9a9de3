"""Requests to stop: a signal from a person or a queue, or the minutes that were given. The step is finished first."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Tells why the run should end after this step, if it should."""

    def __init__(self, max_minutes: float | None) -> None:
        self.reason = ""
        self._until = None if max_minutes is None else time.monotonic() + 60 * max_minutes

    @contextmanager
    def listening(self) -> Iterator[None]:
        """SIGINT and SIGTERM are noted; a second SIGINT interrupts at once. Only the main thread can listen."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def is_due(self) -> bool:
        if not self.reason and self._until is not None and time.monotonic() >= self._until:
            self.reason = "the minutes given are over"
        return bool(self.reason)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.reason and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.reason = f"{signal.Signals(number).name} was received"
