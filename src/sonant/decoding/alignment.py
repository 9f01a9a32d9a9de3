"""Where each token of a known text is spoken: the likeliest CTC path that writes it, for many texts at once.

Shapes: R texts, T frames, V tokens, L labels, S = 2L + 1 states: a blank before, between and after the labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sonant.base.lengths import Lengths, frames_needed_by_ctc
from sonant.decoding.long_alignment import align_in_stretches
from sonant.decoding.paths import Alignment, alignment_of, skippable, states_of
from sonant.decoding.scores import LEAST

_CELLS = 1 << 28  # frames * states of texts side by side: 256 MB; one text with more is aligned in stretches


def align(
    log_probs: np.ndarray,
    lengths: Lengths,
    texts: Sequence[Sequence[int]],
    blank_id: int,
    utterances: Sequence[int] | None = None,
) -> list[Alignment | None]:
    """Each text on its row of log-probabilities (B, T, V), or on the one named; None where its frames are too few."""
    rows = np.arange(len(texts)) if utterances is None else np.asarray(utterances, np.int64)
    num_frames = np.asarray(lengths.values)[rows]
    found: list[Alignment | None] = [None] * len(texts)
    for part in _parts(texts, num_frames):
        if len(part) == 1 and _cells(texts[part[0]], num_frames[part[0]]) > _CELLS:
            scores = log_probs[rows[part[0]], : num_frames[part[0]]]
            found[part[0]] = align_in_stretches(scores, texts[part[0]], blank_id)
            continue
        lattice = _Lattice(log_probs, rows[part], num_frames[part], [texts[place] for place in part], blank_id)
        for place, alignment in zip(part.tolist(), lattice.best_paths(), strict=True):
            found[place] = alignment
    return found


def text_log_probs(
    log_probs: np.ndarray, lengths: Lengths, texts: Sequence[Sequence[int]], blank_id: int
) -> np.ndarray:
    """(R,) the log-probability of each text: of all its paths; -inf where its frames are too few."""
    num_frames = np.asarray(lengths.values)
    sums = np.full(len(texts), -np.inf)
    for part in _parts(texts, num_frames):
        lattice = _Lattice(log_probs, part, num_frames[part], [texts[place] for place in part], blank_id)
        sums[part] = lattice.sums()
    return sums


def _parts(texts: Sequence[Sequence[int]], num_frames: np.ndarray) -> Iterator[np.ndarray]:
    """The texts that fit their frames, longest first, as many side by side as memory allows."""
    needed = np.array([frames_needed_by_ctc(text) for text in texts], np.int64)
    fitting = np.flatnonzero((needed <= num_frames) & (num_frames > 0))
    fitting = fitting[np.argsort(-num_frames[fitting], kind="stable")]
    start, cells = 0, 0
    for place, row in enumerate(fitting.tolist()):
        cells = max(cells, _cells(texts[row], num_frames[fitting[start]]))
        if place > start and (place - start + 1) * cells > _CELLS:
            yield fitting[start:place]
            start, cells = place, _cells(texts[row], num_frames[row])
    if start < len(fitting):
        yield fitting[start:]


def _cells(text: Sequence[int], num_frames: int) -> int:
    return (2 * len(text) + 1) * int(num_frames)


class _Lattice:
    """Texts side by side, those with most frames first."""

    def __init__(
        self,
        log_probs: np.ndarray,
        rows: np.ndarray,
        num_frames: np.ndarray,
        texts: list[Sequence[int]],
        blank_id: int,
    ) -> None:
        self.num_frames = num_frames
        self.num_labels = np.array([len(text) for text in texts])
        self.rows, self.scores = rows, log_probs
        self.tokens = np.full((len(texts), 2 * int(self.num_labels.max()) + 1), blank_id)
        for row, text in enumerate(texts):
            self.tokens[row, : 2 * len(text) + 1] = states_of(text, blank_id)
        self.may_skip = skippable(self.tokens)
        self.cells = rows[:, None] * (log_probs.shape[1] * log_probs.shape[2]) + self.tokens

    def emissions(self, frame: int, num_live: int) -> np.ndarray:
        """(live R, S) log-probabilities of the states at one frame."""
        cells = self.cells[:num_live] + frame * self.scores.shape[2]
        scores: np.ndarray = np.maximum(self.scores.reshape(-1).take(cells), LEAST)
        return scores.astype(np.float64)

    def first(self) -> np.ndarray:
        """(R, S): a path begins with a blank or with the first label."""
        scores = np.full(self.cells.shape, -np.inf)
        scores[:, :2] = self.emissions(0, len(scores))[:, :2]
        return scores

    def arrivals(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Paths (live R, S) that stay, come from the state before, and from the one before that."""
        step, skip = np.full(scores.shape, -np.inf), np.full(scores.shape, -np.inf)
        step[:, 1:] = scores[:, :-1]
        skip[:, 2:] = np.where(self.may_skip[: len(scores), 2:], scores[:, :-2], -np.inf)
        return scores, step, skip

    def live(self) -> Iterator[tuple[int, int]]:
        """Each frame but the first, with the number of texts that reach it."""
        for frame in range(1, int(self.num_frames[0])):
            yield frame, int(np.searchsorted(-self.num_frames, -frame))

    def sums(self) -> np.ndarray:
        scores = self.first()
        for frame, num_live in self.live():
            stay, step, skip = self.arrivals(scores[:num_live])
            scores[:num_live] = np.logaddexp(np.logaddexp(stay, step), skip) + self.emissions(frame, num_live)
        last_blank, last_label = self.last(scores)
        return np.asarray(np.logaddexp(last_blank, last_label))

    def best_paths(self) -> Iterator[Alignment]:
        scores = self.first()
        moves = np.zeros((int(self.num_frames[0]), *scores.shape), np.uint8)  # states that a path has come forward by
        for frame, num_live in self.live():
            stay, step, skip = self.arrivals(scores[:num_live])
            move = moves[frame, :num_live]
            best = np.where(step > stay, step, stay)
            np.copyto(move, step > stay)
            np.copyto(move, 2, where=skip > best)
            scores[:num_live] = np.maximum(best, skip) + self.emissions(frame, num_live)
        last_blank, last_label = self.last(scores)
        states = 2 * self.num_labels - (last_label > last_blank)
        paths = self._traced(moves, states)
        log_probs = np.maximum(last_blank, last_label)
        for row, num_frames in enumerate(self.num_frames.tolist()):
            own_scores = self.scores[self.rows[row]]
            yield alignment_of(paths[:num_frames, row], self.tokens[row], own_scores, float(log_probs[row]))

    def last(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(R,) paths that end in the last blank, and in the last label."""
        rows = np.arange(len(scores))
        in_label = np.where(self.num_labels > 0, scores[rows, 2 * self.num_labels - 1], -np.inf)
        return scores[rows, 2 * self.num_labels], in_label

    def _traced(self, moves: np.ndarray, states: np.ndarray) -> np.ndarray:
        """(T, R) the state at each frame, from the last one back."""
        paths = np.zeros(moves.shape[:2], np.int64)
        rows = np.arange(len(states))
        for frame in range(len(moves) - 1, -1, -1):
            is_live = frame < self.num_frames
            paths[frame] = states
            states = states - np.where(is_live, moves[frame, rows, states], 0)
        return paths
