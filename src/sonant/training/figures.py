"""Figures of a stretch of training, as sums that add up over batches and ranks and travel in a run's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from sonant.objectives.loss import Mean

_MOST_PENDING = 256  # figures that may wait on their device, so that a GPU need not stop for each


class Figures:
    """Totals and what they are divided by, of this rank, since the last line of the log."""

    def __init__(self) -> None:
        self.sums: dict[str, tuple[float, float]] = {}
        self._pending: list[tuple[str, Tensor | float, Tensor | float]] = []

    def add(self, *found: Mapping[str, Mean]) -> None:
        for means in found:
            self._pending += [(name, mean.total, mean.count) for name, mean in means.items()]
        if len(self._pending) >= _MOST_PENDING:
            self._sum_up()

    def clear(self) -> None:
        self.sums, self._pending = {}, []

    def state(self) -> dict[str, Any]:
        self._sum_up()
        return {name: list(sums) for name, sums in self.sums.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._pending, self.sums = [], {name: (total, count) for name, (total, count) in state.items()}

    def _sum_up(self) -> None:
        for name, total, count in self._pending:
            before = self.sums.get(name, (0.0, 0.0))
            self.sums[name] = before[0] + float(total), before[1] + float(count)
        self._pending = []


def merged(states: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The means over all ranks of what each has summed."""
    sums: dict[str, tuple[float, float]] = {}
    for state in states:
        for name, (total, count) in state.items():
            before = sums.get(name, (0.0, 0.0))
            sums[name] = before[0] + total, before[1] + count
    return {name: total / count if count else float("nan") for name, (total, count) in sums.items()}
