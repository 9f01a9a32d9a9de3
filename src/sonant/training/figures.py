"""Figures of a stretch of training, as sums that add up over batches and ranks and travel in a run's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from sonant.objectives.loss import Mean


class Figures:
    """Totals and what they are divided by, of this rank, since the last line of the log."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = {}
        self.counts: dict[str, float] = {}

    def add(self, means: Mapping[str, Mean]) -> None:
        for name, mean in means.items():
            self.add_one(name, _number(mean.total), _number(mean.count))

    def add_one(self, name: str, total: float, count: float = 1.0) -> None:
        self.totals[name] = self.totals.get(name, 0.0) + total
        self.counts[name] = self.counts.get(name, 0.0) + count

    def clear(self) -> None:
        self.totals, self.counts = {}, {}

    def state(self) -> dict[str, Any]:
        return {"totals": dict(self.totals), "counts": dict(self.counts)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.totals, self.counts = dict(state["totals"]), dict(state["counts"])


def merged(states: list[dict[str, Any]]) -> dict[str, float]:
    """The means over all ranks of what each has summed."""
    totals: dict[str, float] = {}
    counts: dict[str, float] = {}
    for state in states:
        for name, total in state["totals"].items():
            totals[name] = totals.get(name, 0.0) + total
            counts[name] = counts.get(name, 0.0) + state["counts"][name]
    return {name: totals[name] / counts[name] if counts[name] else float("nan") for name in totals}


def _number(value: Tensor | float) -> float:
    return float(value.item()) if isinstance(value, Tensor) else float(value)
