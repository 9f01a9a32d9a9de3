"""Several corpora in one epoch, by weight, and what "once" means then.

Each corpus is an endless sequence of passes: a pass is all of its utterances in an order of its own, each once.
An epoch takes the next so many utterances of each corpus, wherever in a pass that falls. Therefore
- without weights and with the usual size, an epoch is one pass of every corpus: every utterance exactly once;
- with weights, no utterance of a corpus comes again before all of that corpus have come, however many epochs
  that takes, and one that comes twice in an epoch does so in two passes.
The number of the pass, not that of the epoch, is what draws for an utterance depend on (crops, noise, masks):
in the plain case they are the same. Any epoch is found at once, without those before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonant.base.errors import ConfigError, UsageError
from sonant.base.randomness import generator_for


@dataclass(frozen=True, kw_only=True)
class MixingConfig:
    weights: tuple[float, ...] = ()  # shares of an epoch's utterances, one for each corpus; none: by their sizes
    utterances_per_epoch: int | None = None  # None: as many as all corpora have together

    def __post_init__(self) -> None:
        if any(not weight > 0 for weight in self.weights):
            raise ConfigError(
                "weights", f"{list(self.weights)} was found, every weight must be above 0.", "Leave the corpus out."
            )
        if self.utterances_per_epoch is not None and self.utterances_per_epoch < 1:
            raise ConfigError(
                "utterances_per_epoch", f"{self.utterances_per_epoch} was found, 1 or more is required.", "Raise it."
            )


@dataclass(frozen=True)
class Selection:
    """The utterances of one epoch, each (N,): which corpus, which row of it, and in which pass."""

    corpora: np.ndarray
    rows: np.ndarray
    passes: np.ndarray


class Mixture:
    """Draws epochs from corpora of these sizes."""

    def __init__(self, sizes: Sequence[int], config: MixingConfig = MixingConfig(), *, seed: int = 0) -> None:
        if not sizes or min(sizes) < 1:
            raise UsageError("training data", "a corpus without utterances was found.", "Leave it out, or fill it.")
        self.sizes, self.seed = list(sizes), seed
        self.counts = _shares(self.sizes, config)

    def epoch(self, epoch: int) -> Selection:
        parts = [self._drawn(corpus, epoch) for corpus in range(len(self.sizes))]
        corpora = np.repeat(np.arange(len(self.sizes)), self.counts)
        return Selection(
            corpora, np.concatenate([rows for rows, _ in parts]), np.concatenate([passes for _, passes in parts])
        )

    def _drawn(self, corpus: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a corpus that an epoch takes, and the pass of each."""
        size, count = self.sizes[corpus], self.counts[corpus]
        first, last = epoch * count, (epoch + 1) * count
        rows, passes = [], []
        for number in range(first // size, (last - 1) // size + 1):
            order = generator_for(self.seed, number, str(corpus), "mixing").permutation(size)
            taken = order[max(first - number * size, 0) : last - number * size]
            rows.append(taken)
            passes.append(np.full(len(taken), number))
        return np.concatenate(rows), np.concatenate(passes)


def _shares(sizes: list[int], config: MixingConfig) -> list[int]:
    """How many utterances of each corpus an epoch takes: the nearest whole numbers with the right sum."""
    if config.weights and len(config.weights) != len(sizes):
        raise ConfigError(
            "weights", f"{len(config.weights)} weights were found for {len(sizes)} corpora.", "Give one to each corpus."
        )
    weights = np.array(config.weights or sizes, float)
    total = config.utterances_per_epoch or sum(sizes)
    exact = total * weights / weights.sum()
    counts = np.floor(exact).astype(int)
    short = total - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:short]] += 1
    if counts.min() < 1:
        corpus = int(counts.argmin()) + 1
        raise ConfigError(
            "weights", f"corpus {corpus} would give no utterance to an epoch of {total}.", "Raise its weight."
        )
    return [int(count) for count in counts]
