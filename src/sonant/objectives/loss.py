"""What an objective hands to the trainer: totals, the names of their counts, and figures of health.

An objective never divides: only the trainer knows how much a step holds, over its micro-batches and all ranks. So
4 × 8 examples weigh as 1 × 32 do, and a short batch weighs no more than it should.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import torch
from torch import Tensor, nn

# What a part is a sum over. One that is no sum over examples depends on which of them share a batch, and says so.
Over = Literal["examples", "micro_batch", "step"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One term of a loss."""

    total: Tensor  # scalar, float32, with its gradient
    count: str  # the key of the objective's counts that it is divided by
    weight: float = 1.0
    over: Over = "examples"


@dataclass(frozen=True)
class Mean:
    """A figure as its sum and what it is the mean over, so that it adds up over micro-batches and ranks."""

    total: Tensor | float
    count: Tensor | float = 1.0


@dataclass(frozen=True, kw_only=True)
class Loss:
    parts: Mapping[str, Part]
    health: Mapping[str, Mean] = field(default_factory=dict)
    single: Mapping[str, Mean] = field(default_factory=dict)  # what figures are the sums of, one by one; off the graph

    def divided_by(self, counts: Mapping[str, float]) -> Tensor:
        """Σ weight · total / count: what is backpropagated. A count of nothing has a total of nothing."""
        terms = [part.total * (part.weight / max(counts[part.count], 1e-9)) for part in self.parts.values()]
        return torch.stack(terms).sum()


@dataclass(frozen=True, kw_only=True)
class Watch:
    """A figure that tells of trouble when it stays beyond a bound: what the guards look at and what they say."""

    figure: str  # a key of health, or "loss"
    says: str  # a sentence: what this means
    action: str  # a sentence in the imperative: what to do
    below: float | None = None
    above: float | None = None
    for_steps: int = 200  # in a row
    after_step: int = 0  # early in a run the same figure may be normal
    is_fatal: bool = False  # stops the run, or rolls it back where that is asked for

    def __post_init__(self) -> None:
        assert (self.below is None) != (self.above is None)

    def is_beyond(self, value: float) -> bool:
        return value < self.below if self.below is not None else value > (self.above or 0.0)


B_contra = TypeVar("B_contra", contravariant=True)


class Objective(Protocol[B_contra]):
    """What is to be learnt. It holds settings and no state: all that changes lies in the model."""

    @property
    def watches(self) -> tuple[Watch, ...]: ...

    def counts(self, batch: B_contra) -> Mapping[str, float]:
        """How much of each kind a batch holds, from its data alone; an empty batch holds 0 of every kind."""
        ...

    def __call__(self, model: nn.Module, batch: B_contra, step: int) -> Loss:
        """The loss of a batch; `step` is the number of updates before this one, for what changes with time."""
        ...


AnyObjective = Objective[Any]


def comes_apart(vocabulary_size: int) -> Watch:
    """The loss of a model that predicts tokens is far above that of guessing among so many."""
    return Watch(
        figure="loss",
        above=3 * math.log(vocabulary_size),
        for_steps=50,
        after_step=100,
        says="the loss is far above that of guessing: the model has come apart.",
        action="Lower optimizer.rate, or lengthen the warmup.",
    )
