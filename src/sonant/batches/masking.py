"""Which frames of an utterance are hidden, and which others each of them is told apart from.

Every utterance has its own draws, from the seed, the pass and its id: never from its neighbours, the worker or the
padding. The arithmetic of the spans is that of Hugging Face's `_compute_mask_indices`, which shares one draw over a
batch, and masks padding or fails where an utterance is shorter than a span.

Shapes: T frames of one utterance, m hidden ones, K negatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sonant.base.bounds import Within, check_fields


@dataclass(frozen=True, kw_only=True)
class MaskingConfig:
    """With the defaults 49 % of the frames are hidden, since spans overlap."""

    probability: Annotated[float, Within(0, 1)] = 0.65  # share of frames that would be hidden if no spans overlapped
    span: Annotated[int, Within(1, 10000)] = 10  # frames
    min_spans: Annotated[int, Within(1, 10000)] = 1  # of every utterance long enough

    def __post_init__(self) -> None:
        check_fields(self)


def hidden_frames(num_frames: int, config: MaskingConfig, rng: np.random.Generator) -> np.ndarray:
    """(T,) booleans: at least one is true, if there is a frame at all; half of an utterance shorter than a span."""
    hidden = np.zeros(num_frames, bool)
    if not num_frames:
        return hidden
    span = config.span if num_frames >= config.span else max(num_frames // 2, 1)
    # Rounded up or down by chance, so that short utterances get on average what they should.
    wanted = max(int(config.probability * num_frames / config.span + rng.random()), config.min_spans)
    num_starts = num_frames - span + 1
    count = min(wanted, max(num_frames // span, 1), num_starts)
    starts = rng.choice(num_starts, count, replace=False)
    hidden[(starts[:, None] + np.arange(span)).ravel()] = True
    return hidden


def negatives_within(num_hidden: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """(m, K): for each hidden frame others of the same utterance, counted among the hidden ones.

    Uniform, drawn again and again from all but the frame itself; a frame that is alone has only itself, which an
    objective must leave out as it does every negative that equals its target.
    """
    if num_hidden < 2:
        return np.zeros((num_hidden, count), np.int64)
    drawn = rng.integers(num_hidden - 1, size=(num_hidden, count))
    return drawn + (drawn >= np.arange(num_hidden)[:, None])
