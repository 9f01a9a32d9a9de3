"""Whether one system is better than another: both are resampled alike, so that hard speakers are hard for both.

comparison = compare(first, second)    # tables of the same utterances
comparison.difference.high < 0         # the first makes fewer errors, whichever speakers had come
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sonant.base.errors import SonantError
from sonant.metrics.intervals import BootstrapConfig, Interval, Resampled, resampled_figure, resampled_ratio


@dataclass(frozen=True, kw_only=True, eq=False)
class UtteranceTable:
    """What each utterance adds to the figure of a system: Σ errors / Σ counts."""

    ids: Sequence[str]
    errors: Sequence[float] | np.ndarray  # (N,)
    counts: Sequence[float] | np.ndarray  # (N,) what they are counted by: words, characters, 1
    groups: Sequence[str] | None = None  # (N,) speakers; None: every utterance stands for itself


@dataclass(frozen=True)
class Comparison:
    """How much higher the first of two systems is."""

    difference: Interval
    chance: float  # share of resamples on the weaker side of zero, doubled: read like a two-sided p


def compare(first: UtteranceTable, second: UtteranceTable, config: BootstrapConfig | None = None) -> Comparison:
    """The rows of the tables may stand in any order (Bisani and Ney, 2004)."""
    config = config or BootstrapConfig()
    order = _places_in(first, second)
    counts = np.asarray(first.counts, np.float64)
    _check_counts(first, counts, np.asarray(second.counts, np.float64)[order])
    differences = np.asarray(first.errors, np.float64) - np.asarray(second.errors, np.float64)[order]
    groups = first.ids if first.groups is None else first.groups
    return _comparison(resampled_ratio(differences, counts, groups, config), config)


def compare_figures(
    first: Callable[[np.ndarray], float],
    second: Callable[[np.ndarray], float],
    num_utterances: int,
    groups: Sequence[str] | None = None,
    config: BootstrapConfig | None = None,
) -> Comparison:
    """The same for any figure of utterances that are given by their places (n,), such as a correlation."""
    config = config or BootstrapConfig()
    drawn = resampled_figure(lambda places: first(places) - second(places), num_utterances, groups, config)
    return _comparison(drawn, config)


def _comparison(drawn: Resampled, config: BootstrapConfig) -> Comparison:
    known = drawn.known
    sides = [float((known <= 0).mean()), float((known >= 0).mean())] if known.size else [np.nan]
    return Comparison(drawn.interval(config.level), min(1.0, 2 * min(sides)) if known.size else float("nan"))


def _places_in(first: UtteranceTable, second: UtteranceTable) -> np.ndarray:
    """The row of the second table for each row of the first."""
    places = {id: place for place, id in enumerate(second.ids)}
    alone = sorted(set(first.ids) ^ places.keys())
    if alone or len(first.ids) != len(second.ids) or len(places) != len(second.ids):
        named = f", e.g. '{alone[0]}'," if alone else ""
        problem = f"{len(alone)} utterances{named} are in one table only, of {len(first.ids)} and {len(second.ids)}."
        raise SonantError("comparison", problem, "Run both systems on the same utterances, each of them once.")
    return np.array([places[id] for id in first.ids], np.int64)


def _check_counts(table: UtteranceTable, counts: np.ndarray, others: np.ndarray) -> None:
    for row in np.flatnonzero(counts != others)[:1]:
        problem = f"'{table.ids[row]}' is counted by {counts[row]:g} in one table and {others[row]:g} in the other."
        raise SonantError("comparison", problem, "Score both systems against the same references.")
