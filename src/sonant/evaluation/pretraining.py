"""What pretraining has reached on speech kept back: losses and figures of health, the same frames hidden each time.

totals = pretraining_totals(model, objective, batches)  # on each rank its share; they add up
pretraining_figures([totals])                           # {"loss": …, "contrastive": …, "accuracy": …}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from sonant.batches.pretraining import PretrainingBatch
from sonant.objectives.loss import AnyObjective

Totals = Mapping[str, tuple[float, float]]  # figure -> its sum, and what that is divided by


@torch.no_grad()
def pretraining_totals(
    model: nn.Module, objective: AnyObjective, batches: Iterable[PretrainingBatch], device: torch.device | str = "cpu"
) -> Totals:
    """Sums over batches, in evaluation mode: no dropout, no noise, no layer dropped."""
    was_training = model.training
    model.eval()
    sums: dict[str, tuple[float, float]] = {}
    for batch in batches:
        if not len(batch):
            continue
        counts = objective.counts(batch)
        loss = objective(model, batch.to(device), 0)
        figures: dict[str, tuple[Any, Any]] = {n: (part.total, counts[part.count]) for n, part in loss.parts.items()}
        figures |= {name: (mean.total, mean.count) for name, mean in loss.health.items()}
        weighted = sum(part.weight * part.total for part in loss.parts.values())
        figures["loss"] = weighted, max(counts.values())
        for name, (total, count) in figures.items():
            before = sums.get(name, (0.0, 0.0))
            sums[name] = before[0] + float(total), before[1] + float(count)
    model.train(was_training)
    return sums


def pretraining_figures(totals: Sequence[Totals]) -> dict[str, float]:
    """The figures over all ranks, `loss` first."""
    names = sorted({name for one in totals for name in one}, key=lambda name: (name != "loss", name))
    sums = {name: [one.get(name, (0.0, 0.0)) for one in totals] for name in names}
    counts = {name: sum(count for _, count in found) for name, found in sums.items()}
    return {
        name: sum(total for total, _ in found) / counts[name] if counts[name] else float("nan")
        for name, found in sums.items()
    }
