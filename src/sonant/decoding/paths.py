"""A path through CTC scores, and what of it belongs to each label.

Shapes: T frames, V tokens, L labels; states 0 to 2L: a blank before, between and after the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonant.decoding.scores import LEAST


@dataclass(frozen=True, eq=False)
class Alignment:
    """Of each label the frames that say it, without the blanks beside them."""

    log_prob: float  # of the path
    starts: np.ndarray  # (L,) first frame
    ends: np.ndarray  # (L,) frame behind the last
    peaks: np.ndarray  # (L,) highest log-probability of the label among its frames


def states_of(text: Sequence[int], blank_id: int) -> np.ndarray:
    """(2L + 1,) the token of each state."""
    tokens = np.full(2 * len(text) + 1, blank_id)
    tokens[1::2] = text
    return tokens


def skippable(tokens: np.ndarray) -> np.ndarray:
    """(..., S) booleans: a label that may follow the one before it without a blank."""
    may_skip = np.zeros(tokens.shape, bool)
    may_skip[..., 3::2] = tokens[..., 3::2] != tokens[..., 1:-2:2]
    return may_skip


def alignment_of(path: np.ndarray, tokens: np.ndarray, log_probs: np.ndarray, log_prob: float) -> Alignment:
    """From the state (T,) at each frame, the token of each state, and the scores (T, V)."""
    frames = np.flatnonzero(path % 2)
    labels = path[frames] // 2
    starts = np.flatnonzero(np.diff(labels, prepend=-1))
    ends = np.flatnonzero(np.diff(labels, append=-1))
    said = np.maximum(log_probs[frames, tokens[path[frames]]], LEAST)
    peaks = np.maximum.reduceat(said, starts) if len(starts) else said
    return Alignment(log_prob, frames[starts], frames[ends] + 1, peaks)
