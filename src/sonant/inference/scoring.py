"""Recordings that are scored frame by frame: windows laid together again, and cut into passages to be searched."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from sonant.base.errors import SonantError
from sonant.decoding.passages import Passage, PassageCutter
from sonant.decoding.seams import Stitcher
from sonant.inference.listener import side_by_side
from sonant.inference.pieces import Piece


@dataclass(eq=False)
class BeingScored:
    """A recording on its way."""

    audio: str
    stitcher: Stitcher
    cutter: PassageCutter
    seconds: float = 0.0
    is_read: bool = False
    error: SonantError | None = None
    passages: list[Passage] = field(default_factory=list)
    segment: int = -1

    def take(self, piece: Piece, scores: np.ndarray) -> None:
        """The scores (T, V) of the next piece."""
        if piece.segment != self.segment:
            self.cutter.begin(piece.segment)
            self.segment = piece.segment
        self.passages += self.cutter.push(self.stitcher.push(piece.start, scores))
        if piece.is_last:
            rest = self.stitcher.finish()
            self.passages += self.cutter.push(rest) if rest is not None else []
            self.passages += self.cutter.finish()

    def forget(self) -> None:
        self.passages = []


@torch.no_grad()
def scores_of(
    model: Any, num_symbols: int, recordings: Sequence[np.ndarray], precision: str, device: str
) -> list[np.ndarray]:
    """(T, V) of each."""
    if not model.num_frames(max(map(len, recordings))):
        return [np.zeros((0, num_symbols), np.float32) for _ in recordings]
    kind = device.partition(":")[0]
    with nullcontext() if precision == "fp32" else torch.autocast(kind, torch.bfloat16):
        scores = model(*side_by_side(recordings, device))
    log_probs, frames = scores.log_probs.cpu().numpy(), scores.lengths.values.tolist()
    return [one[:num_frames] for one, num_frames in zip(log_probs, frames, strict=True)]
