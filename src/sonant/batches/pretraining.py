"""Batches to pretrain on: speech, which of its frames are hidden, and what they are told apart from.

The draws are functions of (seed, pass, utterance), made by the workers: `select` makes them again, and finds the same.

Shapes: B utterances, T frames of the longest, M hidden frames of all utterances, K negatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor

from sonant.base.bounds import Within, check_fields
from sonant.base.lengths import Lengths
from sonant.base.randomness import generator_for
from sonant.batches.batch import SpeechBatch
from sonant.batches.collate import collate_speech
from sonant.batches.examples import SpeechExample
from sonant.batches.masking import MaskingConfig, hidden_frames, negatives_within
from sonant.batches.report import Tally


@dataclass(frozen=True, kw_only=True)
class DrawingConfig:
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    num_negatives: Annotated[int, Within(0, 10000)] = 100  # of the same utterance; 0 where an objective needs none
    num_from_others: Annotated[int, Within(0, 10000)] = 0  # negatives of any utterance of the batch besides

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Drawing:
    """Draws what an encoder's frames are hidden by; collates examples for it."""

    num_frames: Callable[[int], int]  # of so many samples
    config: DrawingConfig = DrawingConfig()
    seed: int = 0

    def __call__(self, examples: Sequence[SpeechExample], num_skipped: int = 0) -> PretrainingBatch:
        """Lays examples side by side: the `collate` of a source."""
        return self.over(collate_speech(examples, num_skipped))

    def over(self, speech: SpeechBatch) -> PretrainingBatch:
        num_frames = [self.num_frames(num_samples) for num_samples in speech.lengths.values.tolist()]
        hidden = np.zeros((len(speech), max(num_frames, default=0)), bool)
        rows: list[np.ndarray] = []
        drawn: list[np.ndarray] = []
        for row, (id, number) in enumerate(zip(speech.ids, speech.passes, strict=True)):
            hidden[row, : num_frames[row]] = hidden_frames(
                num_frames[row], self.config.masking, generator_for(self.seed, number, id, "hidden")
            )
            num_hidden = int(hidden[row].sum())
            rng = generator_for(self.seed, number, id, "negatives")
            rows.append(negatives_within(num_hidden, self.config.num_negatives, rng))
            # Which frames of a batch these mean, the whole batch decides; the draws are still the utterance's own.
            drawn.append(rng.integers(1 << 31, size=(num_hidden, self.config.num_from_others)))
        counts = np.array([len(row) for row in rows], np.int64)
        return PretrainingBatch(
            speech=speech,
            drawing=self,
            frame_lengths=Lengths(torch.tensor(num_frames, dtype=torch.int64)),
            hidden=torch.from_numpy(hidden),
            places=torch.from_numpy(np.flatnonzero(hidden)),
            num_hidden=tuple(counts.tolist()),
            negatives=torch.from_numpy(_among_all(rows, drawn, counts)),
        )


def _among_all(rows: Sequence[np.ndarray], drawn: Sequence[np.ndarray], counts: np.ndarray) -> np.ndarray:
    """(M, K): the negatives of all utterances, counted among all hidden frames of the batch."""
    if not rows:
        return np.zeros((0, 0), np.int64)
    firsts = np.repeat(np.cumsum(counts) - counts, counts)[:, None]  # (M, 1): where the own utterance begins
    others = np.concatenate(drawn)
    total = len(others)
    others = others % max(total - 1, 1)
    others += (others >= np.arange(total)[:, None]) & (total > 1)
    return np.concatenate([np.concatenate(rows) + firsts, others], axis=1)


@dataclass(frozen=True, kw_only=True)
class PretrainingBatch:
    speech: SpeechBatch
    drawing: Drawing
    frame_lengths: Lengths  # of the encoder's frames
    hidden: Tensor  # (B, T) bool
    places: Tensor  # (M,) int64: the hidden frames among the B·T, row by row
    num_hidden: tuple[int, ...]  # of each utterance; M together
    negatives: Tensor  # (M, K) int64, counted among the M hidden frames

    @property
    def ids(self) -> tuple[str, ...]:
        return self.speech.ids

    @property
    def reach(self) -> Literal["utterance", "batch"]:
        """Where negatives come from."""
        return "batch" if self.drawing.config.num_from_others else "utterance"

    def __len__(self) -> int:
        return len(self.speech)

    def tally(self) -> Tally:
        return self.speech.tally()

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> PretrainingBatch:
        speech = self.speech.to(device, non_blocking=non_blocking)
        return self._mapped(speech, lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> PretrainingBatch:
        return self._mapped(self.speech.pin_memory(), Tensor.pin_memory)

    def select(self, rows: Sequence[int]) -> PretrainingBatch:
        """Some of the utterances, with what is drawn for them."""
        device = self.hidden.device
        return self.drawing.over(self.speech.to("cpu").select(rows)).to(device)

    def _mapped(self, speech: SpeechBatch, change: Callable[[Tensor], Tensor]) -> PretrainingBatch:
        return replace(
            self,
            speech=speech,
            frame_lengths=Lengths(change(self.frame_lengths.values)),
            hidden=change(self.hidden),
            places=change(self.places),
            negatives=change(self.negatives),
        )
