"""How documents become rows of a model's width: nothing is left out, and every token that can be is predicted once.

    stream   documents one after the other, cut wherever a row is full; each row begins with the last token of the one
             before, so that no prediction is lost at the cut
    packed   several whole documents in a row, as many as fit; only one that is longer than a row is cut
    single   each document in rows of its own

A row of a model that sees n tokens at once holds n + 1: n that it reads and the one behind, which it predicts last.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from sonant.base.randomness import generator_for
from sonant.batches.tokens.spans import Spans

Packing = Literal["stream", "packed", "single"]


class Piece(NamedTuple):
    """A stretch of a token file within one document."""

    span: int
    start: int
    end: int


class Rows(Protocol):
    """The rows of an epoch."""

    @property
    def sizes(self) -> np.ndarray:
        """(R,) tokens of each."""
        ...

    def pieces(self, row: int) -> Sequence[Piece]: ...


def rows_of(spans: Spans, block_size: int, packing: Packing, *, seed: int, epoch: int, is_shuffled: bool) -> Rows:
    """Where it is shuffled, documents come in another order each epoch, and the text is cut at other places."""
    if packing == "stream":
        return _Stream(spans, block_size, *_drawn(spans, block_size, seed, epoch, is_shuffled))
    pieces = _cut(spans, block_size)
    if packing == "single":
        return _Packed(pieces, [[number] for number in range(len(pieces))])
    order = generator_for(seed, epoch, "", "packing").permutation(len(pieces)) if is_shuffled else None
    return _Packed(pieces, _filled(pieces, block_size + 1, order))


def _drawn(spans: Spans, block_size: int, seed: int, epoch: int, is_shuffled: bool) -> tuple[np.ndarray, int]:
    """The order of documents, and how long the first row is."""
    if not is_shuffled:
        return np.arange(len(spans)), block_size
    rng = generator_for(seed, epoch, "", "stream")
    return rng.permutation(len(spans)), int(rng.integers(1, block_size + 1))


class _Stream:
    """Rows found by arithmetic: an epoch costs what its documents cost, however long they are."""

    def __init__(self, spans: Spans, block_size: int, order: np.ndarray, first: int) -> None:
        self._spans, self._order, self._block_size = spans, order, block_size
        self._behind = np.cumsum(spans.lengths[order])
        total = int(self._behind[-1]) if len(order) else 0
        # Row r predicts the tokens up to ends[r], from one behind those of the row before.
        self._ends = np.minimum(np.arange(1 + first, total + block_size, block_size), total)
        if total < 2:
            self._ends = self._ends[:0]
        self._starts = np.concatenate([[0], self._ends[:-1] - 1]).astype(np.int64)[: len(self._ends)]
        self.sizes = self._ends - self._starts

    def pieces(self, row: int) -> list[Piece]:
        place, end = int(self._starts[row]), int(self._ends[row])
        number = int(np.searchsorted(self._behind, place, side="right"))
        found = []
        while place < end:
            span = int(self._order[number])
            until = min(end, int(self._behind[number]))
            # Counted from the end of the document: what lies behind `until` in the running text lies behind it there.
            last = int(self._spans.ends[span]) - (int(self._behind[number]) - until)
            if until > place:
                found.append(Piece(span, last - (until - place), last))
            place, number = until, number + 1
        return found


@dataclass(frozen=True)
class _Packed:
    """Rows as lists of pieces."""

    whole: Sequence[Piece]
    rows: Sequence[Sequence[int]]

    @property
    def sizes(self) -> np.ndarray:
        lengths = np.array([piece.end - piece.start for piece in self.whole], np.int64)
        return np.array([int(lengths[list(row)].sum()) for row in self.rows], np.int64)

    def pieces(self, row: int) -> list[Piece]:
        return [self.whole[number] for number in self.rows[row]]


def _cut(spans: Spans, block_size: int) -> list[Piece]:
    """Documents, those longer than a row in several pieces, each beginning with the last token of the one before."""
    pieces = []
    for number, (start, end) in enumerate(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)):
        firsts = range(start, max(end - 1, start + 1), block_size)
        pieces += [Piece(number, first, min(first + block_size + 1, end)) for first in firsts]
    return pieces


def _filled(pieces: Sequence[Piece], room: int, order: np.ndarray | None) -> list[list[int]]:
    """Each piece into the fullest row that still has room for it, the longest pieces first; ties as the order says."""
    lengths = np.array([piece.end - piece.start for piece in pieces], np.int64)
    order = np.arange(len(pieces)) if order is None else order
    free: list[tuple[int, int]] = []  # (room left, row), ascending
    rows: list[list[int]] = []
    for number in order[np.argsort(-lengths[order], kind="stable")].tolist():
        length = int(lengths[number])
        place = bisect_left(free, (length, -1))
        left, row = free.pop(place) if place < len(free) else (room, len(rows))
        if row == len(rows):
            rows.append([])
        rows[row].append(number)
        insort(free, (left - length, row))
    return rows
