"""A plan: which utterances meet in which batch of an epoch, and which rank takes it at which step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """All batches of one epoch, the same on every rank, seen from one rank.

    At step s, rank r of W takes batch s·W + r: neighbours in this order run at the same moment. All ranks
    have the same number of steps; where the last batches do not suffice for all, a rank takes an empty one.
    """

    rows: np.ndarray  # (N,) the utterances, batch after batch
    ends: np.ndarray  # (B,) where in `rows` each batch ends
    rank: int = 0
    world: int = 1
    overlong: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # alone in a batch, and over its bound

    def __post_init__(self) -> None:
        assert 0 <= self.rank < self.world

    def __len__(self) -> int:
        """Steps of the epoch, on each rank."""
        return (len(self.ends) + self.world - 1) // self.world

    def __getitem__(self, step: int) -> np.ndarray:
        """The utterances of this rank's batch at a step; none where there is no batch left."""
        if not 0 <= step < len(self):
            raise IndexError(step)
        batch = step * self.world + self.rank
        if batch >= len(self.ends):
            return self.rows[:0]
        return self.rows[self.ends[batch - 1] if batch else 0 : self.ends[batch]]

    def padding_share(self, sizes: np.ndarray) -> float:
        """Share of all padded batches together that is not real; `sizes` are those that were planned."""
        if not len(self.ends):
            return 0.0
        starts = np.concatenate([[0], self.ends[:-1]])
        padded = float((np.maximum.reduceat(sizes[self.rows], starts) * (self.ends - starts)).sum())
        return 1 - float(sizes[self.rows].sum()) / padded if padded else 0.0

    def in_order(self, batches: np.ndarray) -> Plan:
        """The same batches in another order."""
        starts = np.concatenate([[0], self.ends])[batches]
        counts = self.ends[batches] - starts
        ends = np.cumsum(counts)
        places = np.arange(len(self.rows)) + np.repeat(starts - (ends - counts), counts)
        return Plan(self.rows[places], ends, self.rank, self.world, self.overlong)

    def largest(self, sizes: np.ndarray) -> list[int]:
        """The steps of this rank whose batches are the largest of every kind: a few long utterances, many short ones.

        Batches whose longest utterances differ by less than a quarter are of one kind.
        """
        own = np.arange(self.rank, len(self.ends), self.world)
        if not len(own):
            return []
        starts = np.concatenate([[0], self.ends[:-1]])
        longest = np.maximum.reduceat(sizes[self.rows], starts)[own]
        padded = longest * (self.ends - starts)[own]
        kinds = np.floor(np.log(np.maximum(longest, 1e-9)) / np.log(1.25)).astype(np.int64)
        found = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)[::-1]]
        return [int(own[batches[np.argmax(padded[batches])]]) // self.world for batches in found]


class Epochs(Generic[T]):
    """What is made of an epoch, once however many workers ask for it, and kept until they are past the next one."""

    def __init__(self, make: Callable[[int], T]) -> None:
        self._make, self._made, self._lock = make, dict[int, T](), Lock()

    def __getitem__(self, epoch: int) -> T:
        with self._lock:
            if epoch not in self._made:
                self._made = {number: made for number, made in self._made.items() if abs(number - epoch) == 1}
                self._made[epoch] = self._make(epoch)
            return self._made[epoch]
