"""Where in a model its gradients are: parameters by the first words of their names, for a norm of each part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile

from torch import nn


def by_part(names: Mapping[nn.Parameter, str], num_words: int) -> dict[str, list[nn.Parameter]]:
    """`encoder.transformer.layers.3.norm.weight` belongs to `encoder.transformer`, of two words; of none: no parts.

    Words that all names begin with tell nothing apart and are left out; a numbered layer goes with its fellows.
    """
    if not num_words:
        return {}
    side_by_side = zip(*(_modules(name) for name in names.values()), strict=False)
    shared = sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, side_by_side))
    parts: dict[str, list[nn.Parameter]] = {}
    for parameter, name in names.items():
        words = _before_a_number(_modules(name)[shared:])[:num_words]
        parts.setdefault(".".join(words) or name.rpartition(".")[2], []).append(parameter)
    return parts


def _modules(name: str) -> list[str]:
    return name.split(".")[:-1]


def _before_a_number(words: Iterable[str]) -> list[str]:
    return list(takewhile(lambda word: not word.isdecimal(), words))
