"""The model and its objective as one module: what is distributed, so that every rank calls the same collectives.

A rank that is short of a batch still takes part: it gives a loss of nothing with gradients of nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sonant.base.errors import ConfigError
from sonant.objectives.loss import AnyObjective, Loss, Mean


class Learner(nn.Module):
    """Maps a batch to what is backpropagated and to its figures."""

    def __init__(self, model: nn.Module, objective: AnyObjective, *, is_sharded: bool = False) -> None:
        super().__init__()
        self.model = model
        self.objective = objective
        self.is_sharded = is_sharded
        self._last: Any = None  # a batch that was not empty: shards must run something

    def forward(
        self, batch: Any, own: Mapping[str, float], counts: Mapping[str, float], step: int
    ) -> tuple[Tensor, dict[str, Mean]]:
        """`own` counts the batch, `counts` the whole step on all ranks."""
        if len(batch):
            self._last = batch if self.is_sharded else None
            loss = self.objective(self.model, batch, step)
            return loss.divided_by(counts), figures_of(loss, own)
        if not self.is_sharded:
            return self._nothing(), {}
        if self._last is None:
            problem = "there are fewer batches in an epoch than ranks, and sharded weights need one on each."
            raise ConfigError("batches", problem, "Make batches smaller, or use fewer ranks.")
        # Weights are gathered layer by layer on all ranks at once, so this one must go through its layers too.
        return self.objective(self.model, self._last, step).divided_by(counts) * 0.0, {}

    def _nothing(self) -> Tensor:
        """Zero, reached by every parameter."""
        return torch.stack([p.flatten()[0].float() * 0.0 for p in self.model.parameters() if p.requires_grad]).sum()


def figures_of(loss: Loss, own: Mapping[str, float]) -> dict[str, Mean]:
    """What is worth telling of a loss, off the graph: its parts over what the batch counts, and its health."""
    parts = {name: Mean(part.total.detach(), own[part.count]) for name, part in loss.parts.items()}
    return parts | {name: Mean(_off(mean.total), _off(mean.count)) for name, mean in loss.health.items()}


def _off(value: Tensor | float) -> Tensor | float:
    return value.detach() if isinstance(value, Tensor) else value
