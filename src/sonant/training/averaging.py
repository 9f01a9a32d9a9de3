"""The mean of the weights of several validations, kept as files until the run ends."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sonant.checkpoints.tensors import read_tensors, write_tensors
from sonant.training.config import AverageConfig, BestConfig


class Averaging:
    """Knows which validations are kept; its list travels in the run's state, so that a kill leaves no stray weights."""

    def __init__(self, folder: str, config: AverageConfig, best: BestConfig) -> None:
        self.folder, self.config, self.best = folder, config, best
        self.kept: list[tuple[int, float]] = []  # step and figure, the one to go first at the end
        self._before: list[tuple[int, float]] = []

    def wants(self, value: float) -> bool:
        """Whether the weights of this validation belong to the mean as things stand."""
        if not self.config.count:
            return False
        is_full = len(self.kept) >= self.config.count
        return self.config.of == "last" or not is_full or self._rank(value) < self._rank(self.kept[-1][1])

    def take(self, step: int, value: float, weights: Mapping[str, Tensor]) -> None:
        write_tensors(self._path(step), weights)
        self.note(step, value)

    def note(self, step: int, value: float) -> None:
        """The list alone: what ranks do that write nothing."""
        self.kept = [entry for entry in self.kept if entry[0] != step] + [(step, value)]
        if self.config.of == "best":
            self.kept.sort(key=lambda entry: (self._rank(entry[1]), entry[0]))
        else:
            self.kept.sort(key=lambda entry: -entry[0])
        self.kept = self.kept[: self.config.count]

    def mean(self) -> dict[str, Tensor]:
        """The mean of what is kept, added up in float64 in the order of the steps; whole numbers are copied."""
        paths = [self._path(step) for step, _ in sorted(self.kept)]
        newest = read_tensors(paths[-1])
        sums = {name: torch.zeros_like(t, dtype=torch.float64) for name, t in newest.items() if t.is_floating_point()}
        for path in paths:
            weights = read_tensors(path)
            for name in sums:
                sums[name] += weights[name]
        return {name: (sums[name] / len(paths)).to(t.dtype) if name in sums else t for name, t in newest.items()}

    def tidy(self) -> None:
        """Removes weights that neither this state nor the one before it needs."""
        wanted = {os.path.basename(self._path(step)) for step, _ in [*self.kept, *self._before]}
        self._before = list(self.kept)
        for name in os.listdir(self.folder) if os.path.isdir(self.folder) else ():
            if name not in wanted:
                os.unlink(os.path.join(self.folder, name))

    def state(self) -> dict[str, Any]:
        return {"kept": [list(entry) for entry in self.kept]}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.kept = [(int(step), float(value)) for step, value in state["kept"]]

    def _rank(self, value: float) -> float:
        return value if self.best.mode == "min" else -value

    def _path(self, step: int) -> str:
        return os.path.join(self.folder, f"step-{step:06d}.safetensors")
