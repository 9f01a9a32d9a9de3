"""Groups of utterances side by side: of each value of a column, how many there are and how many errors they have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonant.evaluation.table import Evaluation
from sonant.metrics.intervals import BootstrapConfig, Interval

COLUMNS = ("group", "utterances", "words", "wer", "95 % low", "high", "cer")


@dataclass(frozen=True)
class Group:
    """The utterances that share a value."""

    value: str
    num_utterances: int
    num_words: int
    wer: Interval
    cer: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values; one speaker alone has no interval."""
        bounds = [self.wer.low, self.wer.high] if self.wer.low == self.wer.low else None
        counts = {"utterances": self.num_utterances, "words": self.num_words}
        return {"value": self.value, **counts, "wer": self.wer.value, "interval": bounds, "cer": self.cer}

    def cells(self) -> list[object]:
        """What stands under COLUMNS."""
        rates = (self.wer.value, self.wer.low, self.wer.high, self.cer)
        return [self.value, self.num_utterances, self.num_words, *map(percent, rates)]


def broken_down(
    evaluation: Evaluation, values: Mapping[str, str], config: BootstrapConfig | None = None
) -> list[Group]:
    """A group for each value; `values` holds that of every utterance by id."""
    found = []
    for value in sorted(set(values.values())):
        rows = tuple(row for row in evaluation.rows if values.get(row.id) == value)
        if rows:
            part, words = Evaluation(evaluation.facts, rows), int(sum(row.counts["wer"] for row in rows))
            found.append(Group(value, len(rows), words, part.interval("wer", config), part.figure("cer")))
    return found


def percent(value: float) -> str:
    return "" if math.isnan(value) else f"{100 * value:.2f} %"
