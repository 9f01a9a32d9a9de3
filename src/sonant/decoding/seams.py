"""Windows of a long recording joined where both of two neighbours are silent, so that no word is doubled or lost.

Two windows seldom place a symbol in the very same frame: cut at a fixed frame, one that stands just before it here and
just behind it there would be written twice, or never. Shapes: T frames of an overlap, V tokens.
"""

from __future__ import annotations

import numpy as np

_ENOUGH_ROOM = 8  # frames without a symbol on each side; more of them make no better seam
_SAME_SYMBOL = 12  # frames that it may stand apart in two windows


class Stitcher:
    """Takes the scores of windows in order and gives the rows that no later window changes."""

    def __init__(self, context: int, blank_id: int) -> None:
        self.context, self.blank_id = context, blank_id
        self._held: np.ndarray | None = None
        self._start = 0  # frame of the first row that is held

    def push(self, start: int, scores: np.ndarray) -> np.ndarray:
        """Of a window (frames, V) that begins at frame `start`."""
        if self._held is None:
            self._held, self._start = scores, start
            return scores[:0]
        left, scores = self._held, scores[max(self._start - start, 0) :]
        settled = max(start - self._start, 0)  # rows that the window does not reach
        shared = left[settled:]
        centre = start + self.context - self._start - settled
        seam = best_seam(shared, scores[: len(shared)], max(centre, 0), self.context // 2, self.blank_id)
        self._held, self._start = scores[seam:], self._start + settled + seam
        return left[: settled + seam]

    def finish(self) -> np.ndarray | None:
        """The rest; None where there was no window. The next window begins anew."""
        held, self._held = self._held, None
        return held


def best_seam(left: np.ndarray, right: np.ndarray, centre: int, slack: int, blank_id: int) -> int:
    """The frame of an overlap (T, V), as two windows heard it, from which on the right one is used: near the centre."""
    candidates = np.arange(max(centre - slack, 0), min(centre + slack, len(left)) + 1)
    paths = left.argmax(axis=1), right.argmax(axis=1)
    room = _room(paths, blank_id, candidates)
    room[_divided(paths, blank_id)[candidates]] = -1
    best = np.lexsort((np.abs(candidates - centre), -room))[0]
    return int(candidates[best])


def _room(paths: tuple[np.ndarray, np.ndarray], blank_id: int, candidates: np.ndarray) -> np.ndarray:
    """Frames between each candidate and the nearest symbol of either path, as far as they count."""
    spoken = np.flatnonzero((paths[0] != blank_id) | (paths[1] != blank_id))
    edges = np.concatenate([[-_ENOUGH_ROOM - 1], spoken, [len(paths[0]) + _ENOUGH_ROOM]])
    behind = np.searchsorted(edges, candidates)
    room = np.minimum(edges[behind] - candidates, candidates - edges[behind - 1] - 1)
    return np.asarray(room.clip(0, _ENOUGH_ROOM))


def _divided(paths: tuple[np.ndarray, np.ndarray], blank_id: int) -> np.ndarray:
    """(T + 1,) booleans: a symbol that both heard stands before the frame in one path and behind it in the other."""
    (ids, places), (other_ids, other_places) = (_symbols(path, blank_id) for path in paths)
    divided = np.zeros(len(paths[0]) + 1, bool)
    apart = np.abs(places[:, None] - other_places).astype(float)
    apart[ids[:, None] != other_ids] = np.inf
    if not apart.size:
        return divided
    nearest, other_nearest = apart.argmin(axis=1), apart.argmin(axis=0)
    for one, other in enumerate(nearest.tolist()):
        if other_nearest[other] == one and apart[one, other] <= _SAME_SYMBOL:
            low, high = sorted((int(places[one]), int(other_places[other])))
            divided[low + 1 : high + 1] = True
    return divided


def _symbols(path: np.ndarray, blank_id: int) -> tuple[np.ndarray, np.ndarray]:
    """The symbols of a path, and the frames that they begin in."""
    begins = np.flatnonzero((np.diff(path, prepend=blank_id) != 0) & (path != blank_id))
    return path[begins], begins
