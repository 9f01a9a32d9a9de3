"""Strata: speakers (or utterances) that are alike in the labels over which splits are to be balanced."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sonant.base.errors import ConfigError
from sonant.base.names import suggestion

_FEW_VALUES = 10  # numbers of more different values are cut at their quartiles
MERGED = "rare"


class Traits:
    """What one unit's utterances say, label by label; the order in which they come does not matter."""

    __slots__ = ("milliseconds", "num_utterances", "values")

    def __init__(self, num_labels: int) -> None:
        self.num_utterances = 0
        self.milliseconds = 0  # whole numbers have the same sum in any order
        self.values: tuple[Counter[Any], ...] = tuple(Counter() for _ in range(num_labels))

    def add(self, seconds: float, values: Sequence[Any]) -> None:
        self.num_utterances += 1
        self.milliseconds += round(seconds * 1000)
        for counter, value in zip(self.values, values, strict=True):
            counter["+".join(sorted(map(str, value))) if isinstance(value, list | tuple) else value] += 1

    def usual(self, label: int) -> Any:
        """The value that most of the utterances have; of several, the first in sorted order."""
        counts = self.values[label]
        return min(counts, key=lambda value: (-counts[value], is_missing(value), str(value)))


def is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def value_of(utterance: Any, name: str) -> Any:
    """A label or a further column of an utterance; None where it has none of that name."""
    if name in utterance.labels:
        return utterance.labels[name]
    return utterance.extra.get(name)


def refuse_unknown(wanted: Sequence[str], known: set[str], field: str) -> None:
    for name in wanted:
        if name not in known:
            raise ConfigError(field, f"there is no label or column '{name}'.", suggestion(name, known))


def strata_of(units: Mapping[str, Traits], num_labels: int, rare: int) -> dict[str, str]:
    """The stratum of each unit: its values joined; strata of fewer than `rare` units become one."""
    parts = [_classes({key: traits.usual(label) for key, traits in units.items()}) for label in range(num_labels)]
    joined = {key: " / ".join(part[key] for part in parts) for key in units}
    sizes = Counter(joined.values())
    return {key: stratum if sizes[stratum] >= rare else MERGED for key, stratum in joined.items()}


def _classes(values: Mapping[str, Any]) -> dict[str, str]:
    present = {value for value in values.values() if not is_missing(value)}
    if len(present) <= _FEW_VALUES or not all(isinstance(value, int | float) for value in present):
        return {key: "missing" if is_missing(value) else str(value) for key, value in values.items()}
    numbers = sorted(value for value in values.values() if not is_missing(value))
    bounds = [float(bound) for bound in np.quantile(numbers, [0.25, 0.5, 0.75])]
    return {
        key: "missing" if is_missing(value) else f"quarter {bisect_right(bounds, value) + 1}"
        for key, value in values.items()
    }
