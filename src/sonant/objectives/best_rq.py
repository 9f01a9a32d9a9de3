"""The objective of BEST-RQ: cross-entropy of the guess at each hidden frame.

Simpler and steadier than the contrastive one: it is a sum over frames, so accumulated equals large batch exactly.

Shapes: M hidden frames, V entries of the codebook.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.batches.pretraining import PretrainingBatch
from sonant.layers.layer_drop import draw_of
from sonant.models.best_rq import Guessed
from sonant.objectives.loss import Loss, Mean, Part, Watch


class BestRqObjective:
    """Maps a `BestRq` and a batch to one part, over hidden frames."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.watches = _WATCHES

    def counts(self, batch: PretrainingBatch) -> Mapping[str, float]:
        return {"hidden_frames": float(sum(batch.num_hidden))}

    def __call__(self, model: nn.Module, batch: PretrainingBatch, step: int) -> Loss:
        guessed: Guessed = model(
            batch.speech.waveforms,
            batch.speech.lengths,
            batch.hidden,
            batch.places,
            draw=draw_of(self.seed, step),
        )
        with torch.autocast(guessed.logits.device.type, enabled=False):
            logits = guessed.logits.float()
            losses = F.cross_entropy(logits, guessed.targets, reduction="none")  # (M,)
        guesses = logits.detach().argmax(dim=1)  # (M,)
        return Loss(
            parts={"guess": Part(total=losses.sum(), count="hidden_frames")},
            health=_health(guesses, guessed.targets, logits.shape[1], batch),
            single={"guess": Mean(losses.detach()), "accuracy": Mean(guesses == guessed.targets)},
        )


def _health(guesses: Tensor, targets: Tensor, num_entries: int, batch: PretrainingBatch) -> dict[str, Mean]:
    num_hidden = len(batch.places)
    mask_share = Mean(num_hidden, batch.frame_lengths.values.sum())
    if not num_hidden:
        return {"mask_share": mask_share}
    return {
        "mask_share": mask_share,
        "accuracy": Mean((guesses == targets).sum(), num_hidden),
        "target_perplexity": Mean(_perplexity(targets, num_entries) * num_hidden, num_hidden),
        "guess_perplexity": Mean(_perplexity(guesses, num_entries) * num_hidden, num_hidden),
    }


def _perplexity(entries: Tensor, num_entries: int) -> Tensor:
    """How many entries are in use on average."""
    share = torch.zeros(num_entries, device=entries.device)
    share.scatter_add_(0, entries, torch.ones_like(entries, dtype=share.dtype))
    share /= len(entries)
    return torch.exp(-torch.xlogy(share, share).sum())


_WATCHES = (
    Watch(
        figure="guess_perplexity",
        below=1.5,
        after_step=500,
        for_steps=500,
        says="the same entry is guessed for almost every frame: nothing is learnt of what is hidden.",
        action="Lower optimizer.rate, or lengthen schedule.warmup.",
    ),
    Watch(
        figure="target_perplexity",
        below=2.0,
        says="almost all frames have the same target: the recordings hold silence, or the codebook suits them badly.",
        action="Listen to some of the utterances, or choose another targets.seed.",
    ),
)
