"""How fast a training is and how long it will take. Nothing that is learnt depends on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sonant.batches.report import Tally


class Pace:
    """Counts what passed since the last lap, without the pauses of validation."""

    def __init__(self) -> None:
        self.started = self._lap = self._saved = time.monotonic()
        self._paused = self.total_paused = self.last_pause = 0.0
        self._tally = Tally()
        self.total = Tally()
        self._step = 0
        self._seconds_per_step = 0.0

    def start(self, step: int) -> None:
        """Begins to count at this step."""
        self.started = self._lap = self._saved = time.monotonic()
        self._step = step

    def count(self, tally: Tally) -> None:
        self._tally += tally

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What happens inside does not count as training."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.last_pause = time.monotonic() - began
            self._paused += self.last_pause
            self.total_paused += self.last_pause

    def lap(self, step: int, total_steps: int | None) -> tuple[int, dict[str, float]]:
        """The steps since the last lap, and how fast they were."""
        now = time.monotonic()
        seconds = max(now - self._lap - self._paused, 1e-9)
        steps = step - self._step
        found = {"seconds": now - self.started, "steps_per_second": steps / seconds}
        if self._tally.seconds:
            found["audio_per_second"] = self._tally.seconds / seconds
        if self._tally.tokens:
            found["tokens_per_second"] = self._tally.tokens / seconds
        if total_steps is not None and steps:
            each = seconds / steps
            self._seconds_per_step = 0.7 * self._seconds_per_step + 0.3 * each if self._seconds_per_step else each
            found["seconds_left"] = self._seconds_per_step * (total_steps - step)
        self.total += self._tally
        self._lap, self._step, self._paused, self._tally = now, step, 0.0, Tally()
        return steps, found

    def saved(self) -> None:
        self._saved = time.monotonic()

    def seconds_since_save(self) -> float:
        return time.monotonic() - self._saved

    def seconds(self) -> float:
        """Since this start."""
        return time.monotonic() - self.started
