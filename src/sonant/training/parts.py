"""What a recipe hands to the trainer: a model, what it learns from, and functions for all that is particular."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn

from sonant.batches.loader import Loader
from sonant.objectives.loss import AnyObjective
from sonant.reports.page import Block


class Validate(Protocol):
    def __call__(self, model: nn.Module, step: int, /) -> Mapping[str, float]:
        """The figures of the model as it is; called on all ranks, which must give the same."""
        ...


class SaveBundle(Protocol):
    def __call__(self, folder: str, weights: Mapping[str, Tensor], step: int, metrics: Mapping[str, float], /) -> None:
        """Writes a bundle with these weights; the same arguments give the same bytes."""
        ...


@dataclass(frozen=True)
class Parts:
    model: nn.Module
    objective: AnyObjective
    loader: Loader[Any]
    save_bundle: SaveBundle
    validate: Validate | None = None
    sections: Callable[[], Sequence[Block]] = tuple  # what the recipe adds to the run's page: samples, the first batch
    config: Mapping[str, Any] = field(default_factory=dict)  # of the whole run, for trackers


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """How a training ended."""

    run: str
    step: int
    reason: str  # why it ended
    is_finished: bool  # or it goes on when it is started again
    best_step: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)  # of the best validation
