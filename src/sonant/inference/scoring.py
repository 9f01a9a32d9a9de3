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
from sonant.decoding.scores import LEAST
from sonant.decoding.seams import Stitcher
from sonant.decoding.spelling import Spelling
from sonant.inference.listener import side_by_side
from sonant.inference.pieces import Piece

_SILENCE = 1e-4  # of full scale, 80 dB below it: three steps of 16 bits


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


def scores_of(
    model: Any, spelling: Spelling, recordings: Sequence[np.ndarray], precision: str, device: str
) -> list[np.ndarray]:
    """(T, V) of each. Where there is nothing but silence nothing is said, whatever a model makes of it."""
    found = [nothing_said(model.num_frames(len(one)), spelling) for one in recordings]
    heard = [place for place, one in enumerate(recordings) if len(found[place]) and not is_silent(one)]
    if heard:
        scored = _scored(model, [recordings[place] for place in heard], precision, device)
        for place, one in zip(heard, scored, strict=True):
            found[place] = one
    return found


def is_silent(samples: np.ndarray) -> bool:
    return not len(samples) or float(np.abs(samples).max()) < _SILENCE


def nothing_said(num_frames: int, spelling: Spelling) -> np.ndarray:
    """(T, V)."""
    scores = np.full((num_frames, spelling.tokenizer.size), LEAST, np.float32)
    scores[:, spelling.blank_id] = 0.0
    return scores


@torch.no_grad()
def _scored(model: Any, recordings: Sequence[np.ndarray], precision: str, device: str) -> list[np.ndarray]:
    kind = device.partition(":")[0]
    with nullcontext() if precision == "fp32" else torch.autocast(kind, torch.bfloat16):
        scores = model(*side_by_side(recordings, device))
    log_probs, frames = scores.log_probs.cpu().numpy(), scores.lengths.values.tolist()
    return [one[:num_frames] for one, num_frames in zip(log_probs, frames, strict=True)]
