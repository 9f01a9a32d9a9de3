"""What an augmentation's values are drawn from."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from sonant.base.bounds import Range, WholeRange, Within
from sonant.base.errors import ConfigError

Probability = Annotated[float, Within(0.0, 1.0)]  # that an utterance is augmented so, drawn anew in each epoch
Share = Annotated[Range, Within(0.0, 1.0)]
Fade = Annotated[float, Within(0.0, 1.0)]


def drawn(rng: np.random.Generator, between: Range) -> float:
    """Evenly from between the two; equal ends fix the value."""
    return float(rng.uniform(*between))


def drawn_whole(rng: np.random.Generator, between: WholeRange) -> int:
    """Evenly from the whole numbers between the two, both included."""
    return int(rng.integers(*between, endpoint=True))


def refuse_without_effect(field: str, has_no_effect: bool) -> None:
    """A setting that can never change anything is a mistake, not a choice."""
    if has_no_effect:
        raise ConfigError(field, "this setting never changes anything.", "Change it, or remove the augmentation.")
