"""Tables of a recogniser's evaluation: groups of utterances, and decodings that were tried, each with its errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonant.evaluation.table import Evaluation
from sonant.metrics.intervals import BootstrapConfig, Interval

_BOUNDS = 4  # the place of intervals in a row


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
        """A row of a table: rates as numbers, so that it can be sorted by them."""
        bounds = "" if math.isnan(self.wer.low) else f"{percent(self.wer.low)} to {percent(self.wer.high)}"
        rates = [round(100 * self.wer.value, 2), bounds, round(100 * self.cer, 2)]
        return [self.value, self.num_utterances, self.num_words, *rates]


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


def side_by_side(groups: Sequence[Group]) -> tuple[list[str], list[list[object]]]:
    """Columns and rows of a table; where each group is one speaker there are no intervals."""
    columns = ["group", "utterances", "words", "wer %", "95 %", "cer %"]
    rows = [group.cells() for group in groups]
    if any(row[_BOUNDS] for row in rows):
        return columns, rows
    return columns[:_BOUNDS] + columns[_BOUNDS + 1 :], [row[:_BOUNDS] + row[_BOUNDS + 1 :] for row in rows]


def tried_decodings(tried: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[object]]]:
    """Columns and rows of what decoding was chosen from."""
    names = list(dict.fromkeys(name for one in tried for name in one["weights"]))
    rows = [
        [one["stage"], *(one["weights"].get(name, "") for name in names), f"{100 * one['wer']:.2f}"] for one in tried
    ]
    return ["stage", *names, "wer %"], rows


def percent(value: float) -> str:
    return "" if math.isnan(value) else f"{100 * value:.2f} %"
