"""How far a figure would move with other speakers: percentile bootstrap over whole groups of utterances.

Shapes: N utterances in G groups (speakers; each utterance is its own where none are named), R resamples.
Figures are those of all utterances together; a resample draws G groups with replacement and takes them whole.
Named groups are drawn in the order of their names, so that the order of the utterances does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sonant.base.bounds import Within, check_fields
from sonant.base.randomness import generator_for

_CELLS = 1 << 22  # draws that are held at once: 32 MB


@dataclass(frozen=True, kw_only=True)
class BootstrapConfig:
    """The same seed draws the same groups."""

    resamples: Annotated[int, Within(100, 1_000_000)] = 2000
    level: Annotated[float, Within(0.5, 0.999)] = 0.95  # the share of resamples that lies inside
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Interval:
    """A figure and where it would lie with other groups; NaN at both ends: one group says nothing of others."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Resampled:
    """A figure, and what it is of each resample."""

    value: float
    drawn: np.ndarray  # (R,)
    num_groups: int

    @property
    def known(self) -> np.ndarray:
        """The resamples that have the figure, if there is anything to draw from."""
        return self.drawn[np.isfinite(self.drawn)] if self.num_groups > 1 else self.drawn[:0]

    def interval(self, level: float) -> Interval:
        if not self.known.size:
            return Interval(self.value, np.nan, np.nan)
        low, high = np.quantile(self.known, [(1 - level) / 2, (1 + level) / 2])
        return Interval(self.value, float(low), float(high))


def mean_interval(
    values: Sequence[float] | np.ndarray, groups: Sequence[str] | None = None, config: BootstrapConfig | None = None
) -> Interval:
    return ratio_interval(values, np.ones(len(values)), groups, config)


def ratio_interval(
    numerators: Sequence[float] | np.ndarray,
    denominators: Sequence[float] | np.ndarray,
    groups: Sequence[str] | None = None,
    config: BootstrapConfig | None = None,
) -> Interval:
    """Of Σ numerators / Σ denominators (N,): errors of words by words, loss by tokens, hits by utterances."""
    config = config or BootstrapConfig()
    return resampled_ratio(numerators, denominators, groups, config).interval(config.level)


def figure_interval(
    figure: Callable[[np.ndarray], float],
    num_utterances: int,
    groups: Sequence[str] | None = None,
    config: BootstrapConfig | None = None,
) -> Interval:
    """Of any figure of utterances, given by their places (n,), such as a correlation; resamples without one drop."""
    config = config or BootstrapConfig()
    return resampled_figure(figure, num_utterances, groups, config).interval(config.level)


def resampled_ratio(
    numerators: Sequence[float] | np.ndarray,
    denominators: Sequence[float] | np.ndarray,
    groups: Sequence[str] | None,
    config: BootstrapConfig,
) -> Resampled:
    places = _places(groups, len(numerators))
    sums = np.stack([np.bincount(places, np.asarray(column, np.float64)) for column in (numerators, denominators)])
    drawn = [_ratios(sums, draw) for draw in _draws(sums.shape[1], config)]
    return Resampled(float(_ratios(sums)), np.concatenate(drawn), sums.shape[1])


def resampled_figure(
    figure: Callable[[np.ndarray], float], num_utterances: int, groups: Sequence[str] | None, config: BootstrapConfig
) -> Resampled:
    places = _places(groups, num_utterances)
    num_groups = int(places.max(initial=-1)) + 1
    value = figure(np.arange(num_utterances))
    if num_groups < 2:
        return Resampled(value, np.zeros(0), num_groups)
    members = np.split(np.argsort(places, kind="stable"), np.cumsum(np.bincount(places))[:-1])
    drawn = [
        figure(np.concatenate([members[group] for group in row]))
        for draw in _draws(num_groups, config)
        for row in draw.tolist()
    ]
    return Resampled(value, np.array(drawn), num_groups)


def _places(groups: Sequence[str] | None, num_utterances: int) -> np.ndarray:
    """(N,) the number of each utterance's group."""
    if groups is None:
        return np.arange(num_utterances)
    assert len(groups) == num_utterances
    return np.unique(np.asarray(groups, str), return_inverse=True)[1]


def _draws(num_groups: int, config: BootstrapConfig) -> Iterator[np.ndarray]:
    """(some of R, G) groups, as many rows at a time as memory allows."""
    generator = generator_for(config.seed, 0, "", "bootstrap")
    rows = max(1, _CELLS // max(1, num_groups))
    for done in range(0, config.resamples, rows):
        yield generator.integers(0, max(1, num_groups), (min(rows, config.resamples - done), num_groups))


def _ratios(sums: np.ndarray, draw: np.ndarray | None = None) -> np.ndarray:
    """Of all groups, or (some of R,) of the drawn ones; NaN where nothing is counted."""
    totals = [column.sum() if draw is None else column.take(draw).sum(axis=1) for column in sums]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(totals[1] > 0, np.divide(*totals), np.nan)
