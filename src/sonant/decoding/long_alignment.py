"""An hour of speech is aligned in a band of states that moves on with the likeliest path.

Shapes: T frames, V tokens, S states of the text, W of them in the band.
It is the alignment of the whole as long as that path never runs ahead of or behind the likeliest state by more
than half a band: with the default bounds and letters as tokens, by half a minute in an hour, and more in less.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sonant.decoding.paths import Alignment, alignment_of, skippable, states_of
from sonant.decoding.scores import LEAST

_FRAMES_BETWEEN_MOVES = 16


def align_in_band(log_probs: np.ndarray, text: Sequence[int], blank_id: int, width: int) -> Alignment:
    """From scores (T, V) of enough frames for the text."""
    tokens = states_of(text, blank_id)
    may_skip = skippable(tokens)
    needed = _frames_needed(may_skip)
    num_frames, num_states = len(log_probs), len(tokens)
    width = min(num_states, max(width, 4 * _FRAMES_BETWEEN_MOVES))
    moves = np.zeros((num_frames, width), np.uint8)
    lows = np.zeros(num_frames, np.int64)  # the first state of the band
    low, scores = 0, np.full(width, -np.inf)
    scores[:2] = np.maximum(log_probs[0, tokens[:2]], LEAST)
    for frame in range(1, num_frames):
        if frame % _FRAMES_BETWEEN_MOVES == 0:
            moved = _next_low(low, scores, needed, num_frames - frame)
            scores = np.append(scores[moved - low :], np.full(moved - low, -np.inf))
            low = moved
        lows[frame] = low
        band = slice(low, low + width)
        scores = _step(scores, may_skip[band], moves[frame])
        scores += np.maximum(log_probs[frame].take(tokens[band]), LEAST)
    ends = scores[num_states - 1 - low], scores[num_states - 2 - low] if text else -np.inf
    state = num_states - 1 - int(ends[1] > ends[0])
    path = np.zeros(num_frames, np.int64)
    for frame in range(num_frames - 1, -1, -1):
        path[frame] = state
        state -= int(moves[frame, state - lows[frame]])
    return alignment_of(path, tokens, log_probs, float(max(ends)))


def _frames_needed(may_skip: np.ndarray) -> np.ndarray:
    """(S,) the fewest frames from each state to the last label, which falls from state to state."""
    steps = np.where(may_skip[3::2], 1, 2)  # from each label to the next
    of_labels = np.append(np.cumsum(steps[::-1])[::-1], 0)[: len(may_skip) // 2]
    needed = np.zeros(len(may_skip), np.int64)
    needed[1::2], needed[:-1:2] = of_labels, of_labels + 1
    return needed


def _next_low(low: int, scores: np.ndarray, needed: np.ndarray, frames_left: int) -> int:
    """The likeliest state comes to the middle; the end must stay within reach until the next move."""
    centred = low + int(scores.argmax()) - len(scores) // 2
    first_in_time = int(np.searchsorted(-needed, _FRAMES_BETWEEN_MOVES + 1 - frames_left))
    reaching = min(first_in_time, len(needed) - 1) - len(scores) + 1
    return int(np.clip(max(centred, reaching), low, len(needed) - len(scores)))


def _step(scores: np.ndarray, may_skip: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """The best arrivals (W,) at each state; writes by how many states each has come forward."""
    best = scores.copy()
    is_better = scores[:-1] > best[1:]
    np.copyto(best[1:], scores[:-1], where=is_better)
    moves[1:] = is_better
    is_better = may_skip[2:] & (scores[:-2] > best[2:])
    np.copyto(best[2:], scores[:-2], where=is_better)
    np.copyto(moves[2:], 2, where=is_better)
    return best
