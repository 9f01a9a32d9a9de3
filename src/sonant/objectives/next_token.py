"""The next token: what a causal language model learns.

The model is asked for its last hidden states, not for logits: those are made, used and forgotten stretch by stretch
(layers/vocabulary_loss.py). The head is used inside of the model's own forward, so that whatever wraps the model
(shards, adapters) sees it used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sonant.batches.batch import NO_TOKEN, TokenBatch
from sonant.layers.vocabulary_loss import target_log_probs, vocabulary_loss
from sonant.objectives.loss import Loss, Mean, Part, comes_apart


@dataclass(frozen=True, kw_only=True)
class NextTokenConfig:
    """What a row means that holds several documents."""

    mask_documents: bool = False  # attention stays within a document, and none is predicted from the one before
    reset_positions: bool = False  # positions count from 0 in each document


class NextToken:
    """The sum of -log p over every token that has one before it; counted in tokens."""

    watches = (comes_apart(1 << 18),)

    def __init__(self, config: NextTokenConfig | None = None) -> None:
        self.config = config or NextTokenConfig()

    def counts(self, batch: TokenBatch) -> Mapping[str, float]:
        return {"tokens": float((self.targets(batch) != NO_TOKEN).sum())}

    def __call__(self, model: nn.Module, batch: TokenBatch, step: int) -> Loss:
        targets = self.targets(batch)

        def answer(hidden: Tensor, head: nn.Linear) -> tuple[Tensor, Tensor]:
            return vocabulary_loss(hidden.flatten(0, 1), head.weight, head.bias, targets.flatten())

        total, num_correct = model(**self.inputs(batch), answer=answer)
        count = (targets != NO_TOKEN).sum()
        return Loss(
            parts={"next_token": Part(total=total, count="tokens")}, health={"accuracy": Mean(num_correct, count)}
        )

    def scores(self, model: nn.Module, batch: TokenBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Three times (B, T): targets, log p of each in float32 (0 where there is none), and whether it came first."""
        targets = self.targets(batch)
        is_target = targets != NO_TOKEN

        def answer(hidden: Tensor, head: nn.Linear) -> tuple[Tensor, Tensor]:
            return target_log_probs(hidden[is_target], head.weight, head.bias, targets[is_target])

        log_probs, is_correct = model(**self.inputs(batch), answer=answer)
        places = torch.zeros(targets.shape, dtype=torch.float32, device=targets.device)
        return targets, places.masked_scatter(is_target, log_probs), is_target.masked_scatter(is_target, is_correct)

    def inputs(self, batch: TokenBatch) -> dict[str, Tensor | None]:
        """What the model reads: every token but the last, with what it needs to know of documents."""
        width = _width(batch)
        documents, positions = batch.documents[:, :width], batch.positions[:, :width]
        return {
            "tokens": batch.tokens[:, :width].clamp(min=0),
            "documents": documents if self.config.mask_documents else None,
            "positions": positions.clamp(min=0) if self.config.reset_positions else None,
        }

    def targets(self, batch: TokenBatch) -> Tensor:
        """(B, T) the token behind each that is read; NO_TOKEN where there is none to predict."""
        width = _width(batch)
        following = batch.tokens[:, 1:]
        if self.config.mask_documents:
            is_same = batch.documents[:, 1:] == batch.documents[:, :-1]
            following = following.where(is_same, NO_TOKEN)
        missing = width - following.shape[1]  # 1 where rows hold a single token: nothing is predicted
        return torch.nn.functional.pad(following, (0, missing), value=NO_TOKEN)


def _width(batch: TokenBatch) -> int:
    return max(batch.tokens.shape[1] - 1, 1)
