"""Which validation was the best so far, and how long ago."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sonant.base.errors import ConfigError
from sonant.base.names import suggestion
from sonant.training.config import BestConfig


class Best:
    """The memory of early stopping: figures, not weights, which lie on disk."""

    def __init__(self, config: BestConfig) -> None:
        self.config = config
        self.value = math.inf if config.mode == "min" else -math.inf
        self.step = 0
        self.figures: dict[str, float] = {}
        self.num_worse = 0  # validations since

    def take(self, figures: Mapping[str, float], step: int) -> bool:
        """Notes a validation; gives whether it is the best one."""
        name = self.config.figure
        if name not in figures:
            raise ConfigError("best.figure", f"validation gives no '{name}'.", suggestion(name, figures))
        value = figures[name]
        if not self.is_better(value):
            self.num_worse += 1
            return False
        self.value, self.step, self.figures, self.num_worse = value, step, dict(figures), 0
        return True

    def is_better(self, value: float) -> bool:
        """Whether a figure beats the best one by more than the least that counts."""
        gain = self.value - value if self.config.mode == "min" else value - self.value
        return math.isfinite(value) and gain > self.config.min_delta

    def state(self) -> dict[str, Any]:
        value = self.value if math.isfinite(self.value) else None
        return {"value": value, "step": self.step, "figures": self.figures, "num_worse": self.num_worse}

    def restore(self, state: Mapping[str, Any]) -> None:
        if state["value"] is not None:
            self.value = state["value"]
        self.step, self.figures, self.num_worse = state["step"], dict(state["figures"]), state["num_worse"]
