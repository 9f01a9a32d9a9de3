"""The line of a training for people at a terminal, and sentences for everybody; only the first rank speaks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TextIO

_LEADING = ("loss", "rate", "gradient_norm")


class Console:
    """`say` prints a sentence; `line` one that tells how far the training is."""

    def __init__(self, *, is_silent: bool = False, stream: TextIO | None = None) -> None:
        self.is_silent, self.stream = is_silent, stream or sys.stderr

    def say(self, sentence: str) -> None:
        if not self.is_silent:
            print(sentence, file=self.stream, flush=True)

    def line(self, step: int, total: int | None, figures: Mapping[str, float], clock: Mapping[str, float]) -> None:
        """Step, loss, rate, gradient norm, then the others, speed and time left; figures of parts are for the page."""
        parts = [f"step {step:,}" + (f"/{total:,}" if total else "")]
        names = [*(name for name in _LEADING if name in figures), *(n for n in figures if n not in _LEADING)]
        parts += [f"{name} {shown(figures[name])}" for name in names if "/" not in name]
        if clock.get("steps_per_second"):
            parts.append(f"{_speed(clock)}")
        if clock.get("seconds_left"):
            parts.append(f"{duration(clock['seconds_left'])} left")
        self.say("  ".join(parts))


def shown(value: float) -> str:
    """Four digits that matter."""
    return f"{value:.3e}" if value and (abs(value) < 1e-3 or abs(value) >= 1e6) else f"{value:.4g}"


def duration(seconds: float) -> str:
    """1 h 02 min, 3 min 05 s, 12 s."""
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {left:02} s" if minutes else f"{left} s"


def _speed(clock: Mapping[str, float]) -> str:
    for name, unit in (("audio_per_second", "× real time"), ("tokens_per_second", " tokens/s")):
        if clock.get(name):
            return f"{clock[name]:,.0f}{unit}"
    return f"{clock['steps_per_second']:.3g} steps/s"
