"""How long an evaluation takes, by what it spends the time on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Stopwatch:
    """Seconds by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def waits(self, name: str, items: Iterable[T]) -> Iterator[T]:
        """The same items; the time that each is waited for has this name."""
        left = iter(items)
        while True:
            with self(name):
                item = next(left, None)
            if item is None:
                return
            yield item

    def shares(self, of_seconds: float) -> dict[str, float]:
        """All and each as parts of a duration: real-time factors, when it is that of the speech."""
        parts = {"total": sum(self.seconds.values()), **self.seconds}
        return {name: seconds / max(of_seconds, 1e-9) for name, seconds in parts.items()}


def speed_in_words(shares: Mapping[str, float]) -> str:
    """`0.0123: reading 0.0001, network 0.0120, decoding 0.0002`."""
    parts = ", ".join(f"{name} {share:.4f}" for name, share in shares.items() if name != "total")
    return f"{shares['total']:.4f}: {parts}"
