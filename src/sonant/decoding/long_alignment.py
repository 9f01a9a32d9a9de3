"""An hour of speech with its whole text: the likeliest of all paths, without keeping every step of every one.

Only the scores of some frames are kept on the way forward. On the way back each stretch between two of them is gone
through again, where only the states matter that can still reach the one in which the path leaves it.

Shapes: T frames, V tokens, L labels, S = 2L + 1 states: a blank before, between and after the labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sonant.decoding.paths import Alignment, alignment_of, skippable, states_of
from sonant.decoding.scores import LEAST


def align_in_stretches(log_probs: np.ndarray, text: Sequence[int], blank_id: int) -> Alignment:
    """From scores (T, V) of enough frames for the text; memory grows as the square of the cube root of T times S."""
    tokens = states_of(text, blank_id)
    may_skip = skippable(tokens)
    num_frames = len(log_probs)
    kept = list(_kept_scores(log_probs, tokens, may_skip, round((num_frames * len(tokens)) ** (1 / 3)) + 1))
    last = kept[-1][1]
    state = len(tokens) - 1 - int(len(text) > 0 and last[-2] > last[-1])
    log_prob, path, end = float(last[state]), np.zeros(num_frames, np.int64), num_frames - 1
    for first, scores in reversed(kept):
        path[first : end + 1] = _traced(scores, log_probs[first + 1 : end + 1], tokens, may_skip, state)
        state, end = int(path[first]), first
    return alignment_of(path, tokens, log_probs, log_prob)


def _kept_scores(
    log_probs: np.ndarray, tokens: np.ndarray, may_skip: np.ndarray, spacing: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Scores (S,) of the likeliest paths to each state, at every so many frames and the last; the first among them."""
    labels, num_frames = np.ascontiguousarray(tokens[1::2]), len(log_probs)
    barriers = np.where(may_skip[1::2], 0.0, -np.inf)  # between a label and the one before it
    needed = _frames_needed(may_skip)[1::2]
    blank, label = np.full(len(labels) + 1, -np.inf), np.full(len(labels), -np.inf)
    emissions = np.maximum(log_probs[0], LEAST).astype(np.float64)
    blank[0], label[:1] = emissions[tokens[0]], emissions[labels[:1]]
    low = 0  # labels before it can no longer reach the end
    for frame in range(num_frames):
        if frame:
            emissions = np.maximum(log_probs[frame], LEAST).astype(np.float64)
            first, high = max(low, int(np.searchsorted(-needed, frame + 1 - num_frames))), min(len(labels), frame + 1)
            past = max(first, 1)  # the first label that has one before it
            arrived = np.maximum(label[first:high], blank[first:high])
            skipped = label[past - 1 : high - 1] + barriers[past:high]
            np.maximum(arrived[past - first :], skipped, out=arrived[past - first :])
            np.maximum(blank[past : high + 1], label[past - 1 : high], out=blank[past : high + 1])
            blank[first : high + 1] += emissions[tokens[0]]
            np.add(arrived, emissions.take(labels[first:high]), out=label[first:high])
            label[low:first] = blank[low:first] = -np.inf
            low = first
        if frame % spacing == 0 or frame == num_frames - 1:
            scores = np.empty(len(tokens))
            scores[::2], scores[1::2] = blank, label
            yield frame, scores


def _frames_needed(may_skip: np.ndarray) -> np.ndarray:
    """(S,) the fewest frames from each state to the last label, which falls from state to state."""
    steps = np.where(may_skip[3::2], 1, 2)  # from each label to the next
    of_labels = np.append(np.cumsum(steps[::-1])[::-1], 0)[: len(may_skip) // 2]
    needed = np.zeros(len(may_skip), np.int64)
    needed[1::2], needed[:-1:2] = of_labels, of_labels + 1
    return needed


def _traced(
    scores: np.ndarray, log_probs: np.ndarray, tokens: np.ndarray, may_skip: np.ndarray, state: int
) -> np.ndarray:
    """(frames + 1,) the states from the frame of those scores (S,) on, to the one in which the path ends."""
    low = max(0, state - 2 * len(log_probs))
    band = slice(low, state + 1)
    moves = np.zeros((len(log_probs), state + 1 - low), np.uint8)
    scores = scores[band]
    for frame, emissions in enumerate(log_probs):
        scores = _step(scores, may_skip[band], moves[frame])
        scores += np.maximum(emissions, LEAST).astype(np.float64).take(tokens[band])
    path = np.zeros(len(log_probs) + 1, np.int64)
    for frame in range(len(log_probs) - 1, -1, -1):
        path[frame + 1] = state
        state -= int(moves[frame, state - low])
    path[0] = state
    return path


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
