"""What a search looks at, step by step: frames that are surely blank are passed over, unlikely tokens left out.

Shapes: B utterances, longest first, T frames, S steps, V tokens, P pairs of an utterance and a token in all steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sonant.base.bounds import Within, check_fields
from sonant.base.lengths import Lengths
from sonant.decoding.scores import LEAST


@dataclass(frozen=True, kw_only=True)
class FrameConfig:
    """What is not worth looking at."""

    skip_blank_above: Annotated[float, Within(0.5, 1)] = 0.999  # probability; 1: no frame is passed over
    token_window: Annotated[float, Within(0, 1e9)] = 6.0  # nats below the best of the frame
    max_tokens: Annotated[int, Within(1, 1_000_000)] = 40  # of a frame

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, eq=False)
class Frames:
    """Steps of all utterances side by side; at step s the first `num_live[s]` utterances still have frames."""

    order: np.ndarray  # (B,): which utterance stands at each place
    places: np.ndarray  # (S, B): the frame of each step; -1 behind the end
    log_probs: np.ndarray  # (S, B, V)
    skipped: np.ndarray  # (B,): log-probability of all frames passed over
    follows_gap: np.ndarray  # (S, B) booleans: blanks were passed over just before
    num_live: np.ndarray  # (S,)
    num_likely: np.ndarray  # (S, B): tokens worth extending with
    starts: np.ndarray  # (S, B): where they stand among all pairs
    cells: np.ndarray  # (P,): utterance * V + token, rising within a step
    tokens: np.ndarray  # (P,)
    token_logs: np.ndarray  # (P,): their log-probabilities

    def __len__(self) -> int:
        return len(self.log_probs)


def frames_of(
    log_probs: np.ndarray, lengths: Lengths, blank_id: int, silent: np.ndarray, config: FrameConfig
) -> Frames:
    """From log-probabilities (B, T, V); `silent` (V,) are the tokens that are never written."""
    blanks = log_probs[:, :, blank_id]
    is_real = lengths.mask(log_probs.shape[1])
    is_passed = is_real & (np.exp(blanks) > config.skip_blank_above)
    is_kept = is_real & ~is_passed
    counts = is_kept.sum(axis=1)
    order = np.argsort(-counts, kind="stable")
    places = _places(is_kept[order], int(counts.max(initial=0)))
    chosen = np.maximum(log_probs[order[None, :], places], LEAST)
    is_likely = _likely(chosen, config)
    is_likely &= (places >= 0)[:, :, None]
    is_likely[:, :, silent] = False
    is_likely[:, :, blank_id] = False
    num_likely = is_likely.sum(axis=2)
    _, rows, tokens = np.nonzero(is_likely)
    return Frames(
        order=order,
        places=places,
        log_probs=chosen,
        skipped=np.where(is_passed, blanks, 0).sum(axis=1, dtype=np.float64)[order],
        follows_gap=np.diff(places, axis=0, prepend=-1) > 1,
        num_live=(places >= 0).sum(axis=1),
        num_likely=num_likely,
        starts=(np.cumsum(num_likely) - num_likely.ravel()).reshape(num_likely.shape),
        cells=rows * log_probs.shape[2] + tokens,
        tokens=tokens,
        token_logs=chosen[is_likely],
    )


def _places(is_kept: np.ndarray, num_steps: int) -> np.ndarray:
    places = np.full((num_steps, len(is_kept)), -1)
    for row, kept in enumerate(is_kept):
        frames = np.flatnonzero(kept)
        places[: len(frames), row] = frames
    return places


def _likely(log_probs: np.ndarray, config: FrameConfig) -> np.ndarray:
    """(S, B, V) booleans; the best of a frame is always among them."""
    is_likely: np.ndarray = log_probs >= log_probs.max(axis=2, keepdims=True) - config.token_window
    if config.max_tokens < log_probs.shape[2]:
        least = np.partition(log_probs, -config.max_tokens, axis=2)[:, :, -config.max_tokens, None]
        is_likely &= log_probs >= least
    return is_likely
