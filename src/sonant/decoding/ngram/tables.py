"""N-grams by order, as they are estimated, written and read: what a model is built from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class NgramTable:
    """The n-grams of one order."""

    words: np.ndarray  # (N, order) int32: places in the list of words
    log10_probs: np.ndarray  # (N,) float64: of the last word behind the others; NaN: what backing off gives
    log10_backoffs: np.ndarray  # (N,) float64: 0 where nothing follows

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, eq=False)
class NgramTables:
    """All orders, single words first and in the order of the list."""

    words: tuple[str, ...]
    orders: tuple[NgramTable, ...]

    def closed(self) -> NgramTables:
        """The same with every history present, for some toolkits prune "a b" and keep "a b c"; the longest back off
        to nothing, whatever a file says."""
        *orders, longest = self.orders
        orders.append(replace(longest, log10_backoffs=np.zeros(len(longest))))
        for place in range(len(orders) - 1, 1, -1):
            orders[place - 1] = _with_missing(orders[place - 1], orders[place].words[:, :-1])
        return replace(self, orders=tuple(orders))


def _with_missing(table: NgramTable, histories: np.ndarray) -> NgramTable:
    marks, first = np.unique(_marks(histories), return_index=True)
    missing = histories[first[~np.isin(marks, _marks(table.words))]]
    if not len(missing):
        return table
    return NgramTable(
        np.concatenate([table.words, missing]),
        np.concatenate([table.log10_probs, np.full(len(missing), np.nan)]),
        np.concatenate([table.log10_backoffs, np.zeros(len(missing))]),
    )


def _marks(rows: np.ndarray) -> np.ndarray:
    """64 bits that tell rows (N, n) of words apart."""
    marks = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        marks = (marks ^ (column.astype(np.uint64) + np.uint64(1))) * np.uint64(0x9E3779B97F4A7C15)
        marks ^= marks >> np.uint64(29)
    return marks
