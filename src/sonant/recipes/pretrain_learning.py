"""What is learnt from speech alone, wav2vec 2.0's contrast or BEST-RQ's guesses: its settings, masks and objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from sonant.batches.masking import MaskingConfig
from sonant.batches.pretraining import Drawing, DrawingConfig
from sonant.models.best_rq import BestRqConfig
from sonant.models.wav2vec2_pretraining import Wav2Vec2PretrainingConfig
from sonant.objectives.best_rq import BestRqObjective
from sonant.objectives.contrastive import Contrastive, ContrastiveConfig


@dataclass(frozen=True, kw_only=True)
class ContrastiveLearning:
    """wav2vec 2.0 as published."""

    kind: Literal["contrastive"] = "contrastive"
    model: Wav2Vec2PretrainingConfig = field(default_factory=Wav2Vec2PretrainingConfig)
    draws: DrawingConfig = field(default_factory=DrawingConfig)
    objective: ContrastiveConfig = field(default_factory=ContrastiveConfig)


@dataclass(frozen=True, kw_only=True)
class BestRqLearning:
    """Simpler and steadier: no codebook that could collapse."""

    kind: Literal["best_rq"] = "best_rq"
    model: BestRqConfig = field(default_factory=BestRqConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)


Learning = ContrastiveLearning | BestRqLearning


def drawing_of(learning: Learning, num_frames: Callable[[int], int], seed: int) -> Drawing:
    """What hides the frames of an encoder, and draws what they are told from."""
    if isinstance(learning, ContrastiveLearning):
        return Drawing(num_frames, learning.draws, seed)
    return Drawing(num_frames, DrawingConfig(masking=learning.masking, num_negatives=0), seed)


def objective_of(learning: Learning, seed: int) -> Contrastive | BestRqObjective:
    if isinstance(learning, ContrastiveLearning):
        return Contrastive(learning.objective, seed=seed)
    return BestRqObjective(seed=seed)
