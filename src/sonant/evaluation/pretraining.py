"""What pretraining has reached on speech kept back: losses and figures of health, the same frames hidden each time.

    share = measured(model, objective, batches)   # on each rank its own
    found = together([share])
    all_figures(found.rows, found.of_batches)     # {"loss": …, "contrastive": …, "accuracy": …}

What is a sum over hidden frames has a row an utterance; what depends on its batch, as the use of codes does, has none,
and is the mean over batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sonant.batches.pretraining import PretrainingBatch
from sonant.evaluation.table import Evaluation, Facts, Row
from sonant.objectives.loss import AnyObjective, Loss, Mean

Total = tuple[float, float]  # a sum, and what it is divided by


@dataclass(frozen=True)
class Measured:
    """Utterances one by one, and of each batch the figures that no utterance has for itself."""

    rows: tuple[Row, ...]
    batches: Mapping[str, Sequence[Total]]

    @property
    def of_batches(self) -> dict[str, float]:
        return {name: _ratio(found) for name, found in self.batches.items()}


@torch.no_grad()
def measured(
    model: nn.Module, objective: AnyObjective, batches: Iterable[PretrainingBatch], device: torch.device | str = "cpu"
) -> Measured:
    """In evaluation mode: no dropout, no noise, no layer dropped."""
    was_training = model.training
    model.eval()
    rows: list[Row] = []
    figures: dict[str, list[Total]] = {}
    for batch in batches:
        if not len(batch):
            continue
        loss = objective(model, batch.to(device), 0)
        single = _single(loss)
        rows += _rows(batch, single)
        for name, mean in _of_batch(loss, objective.counts(batch)).items():
            if name not in single:
                figures.setdefault(name, []).append((float(mean.total), float(mean.count)))
    model.train(was_training)
    return Measured(tuple(rows), figures)


def together(shares: Sequence[Measured]) -> Measured:
    """What several ranks have measured, whoever had which batch."""
    rows = sorted((row for share in shares for row in share.rows), key=lambda row: row.id)
    names = sorted({name for share in shares for name in share.batches})
    batches = {name: [total for share in shares for total in share.batches.get(name, ())] for name in names}
    return Measured(tuple(rows), batches)


def all_figures(rows: Sequence[Row], of_batches: Mapping[str, float]) -> dict[str, float]:
    """Those of utterances and those of batches, `loss` first."""
    found = {**of_batches, **Evaluation(Facts(task="pretrain"), tuple(rows)).figures()}
    return {name: found[name] for name in sorted(found, key=lambda name: (name != "loss", name))}


def _single(loss: Loss) -> dict[str, Mean]:
    """(M,) each: what hidden frames gave; the loss among them where it is theirs alone."""
    if any(part.over != "examples" for part in loss.parts.values()):
        return dict(loss.single)
    total = torch.stack([part.weight * torch.as_tensor(loss.single[n].total) for n, part in loss.parts.items()])
    return {"loss": Mean(total.sum(dim=0)), **loss.single}


def _of_batch(loss: Loss, counts: Mapping[str, float]) -> dict[str, Mean]:
    weighted = sum(part.weight * part.total for part in loss.parts.values())
    parts = {name: Mean(part.total, counts[part.count]) for name, part in loss.parts.items()}
    return {"loss": Mean(weighted, max(counts.values())), **parts, **loss.health}


def _rows(batch: PretrainingBatch, single: Mapping[str, Mean]) -> Iterable[Row]:
    """A row for each utterance of a batch."""
    sums = {name: _by_utterance(mean.total, batch) for name, mean in single.items()}
    for row, num_hidden in enumerate(batch.num_hidden):
        yield Row(
            id=batch.ids[row],
            group=batch.speech.speakers[row],
            seconds=float(batch.speech.lengths.values[row]) / batch.speech.sample_rate,
            totals={name: values[row] for name, values in sums.items()},
            counts={name: float(num_hidden * mean.count) for name, mean in single.items()},
        )


def _by_utterance(values: Tensor | float, batch: PretrainingBatch) -> list[float]:
    """Sums of (M,) values over the hidden frames of each utterance."""
    parts = torch.split_with_sizes(torch.as_tensor(values).double().cpu(), list(batch.num_hidden))
    return [part.sum().item() for part in parts]


def _ratio(totals: Sequence[Total]) -> float:
    """The same whatever their order."""
    count = math.fsum(count for _, count in totals)
    return math.fsum(total for total, _ in totals) / count if count else float("nan")
