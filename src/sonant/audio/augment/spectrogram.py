"""Augmentation of features (T frames, D bins): SpecAugment, SpecSub and SpecTrim.

Park et al., "SpecAugment" (2019); SpecSub and SpecTrim follow the rules of the U2++ recipes (Wu et al., 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from sonant.audio.augment.ranges import Probability, refuse_without_effect
from sonant.base.bounds import Within, check_fields

Count = Annotated[int, Within(0, 100)]
Width = Annotated[int, Within(0, 10000)]


@dataclass(frozen=True, kw_only=True)
class SpecAugment:
    """Some stretches of frames and some bands of bins are blanked; a mask that would reach over the edge is cut."""

    kind: Literal["spec_augment"] = "spec_augment"
    probability: Probability = 1.0
    time_masks: Count = 2
    time_width: Width = 50  # frames at most
    time_share: Annotated[float, Within(0.0, 1.0)] = 0.2  # of the utterance at most: a short word must stay audible
    frequency_masks: Count = 2
    frequency_width: Width = 10  # bins at most
    fill: Annotated[Literal["mean"] | float, Within(-1e6, 1e6)] = 0.0  # "mean": of all the utterance's features

    def __post_init__(self) -> None:
        check_fields(self)
        if self.time_masks:
            refuse_without_effect("time_width", self.time_width == 0)
            refuse_without_effect("time_share", self.time_share == 0)
        if self.frequency_masks:
            refuse_without_effect("frequency_width", self.frequency_width == 0)
        refuse_without_effect("time_masks", self.time_masks + self.frequency_masks == 0)

    def apply(self, features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        num_frames, num_bins = features.shape
        masked = features.copy()
        fill = features.mean(dtype=np.float64) if self.fill == "mean" else self.fill
        for _ in range(self.time_masks):
            masked[_span(rng, num_frames, min(self.time_width, int(self.time_share * num_frames)))] = fill
        for _ in range(self.frequency_masks):
            masked[:, _span(rng, num_bins, self.frequency_width)] = fill
        return masked


def _span(rng: np.random.Generator, size: int, widest: int) -> slice:
    """1 to `widest` places, beginning anywhere."""
    if widest < 1:
        return slice(0, 0)
    first = int(rng.integers(size))
    return slice(first, min(size, first + int(rng.integers(1, widest, endpoint=True))))


@dataclass(frozen=True, kw_only=True)
class SpecSub:
    """Some stretches of frames are replaced by what was heard a while before them."""

    kind: Literal["spec_sub"] = "spec_sub"
    probability: Probability = 1.0
    times: Annotated[int, Within(1, 100)] = 3
    width: Annotated[int, Within(1, 10000)] = 30  # frames at most

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        replaced = features.copy()
        for _ in range(self.times):
            span = _span(rng, len(features), self.width)
            before = int(rng.integers(span.start, endpoint=True))
            replaced[span] = features[span.start - before : span.stop - before]
        return replaced


@dataclass(frozen=True, kw_only=True)
class SpecTrim:
    """The last frames are cut off, where they are less than half of the utterance."""

    kind: Literal["spec_trim"] = "spec_trim"
    probability: Probability = 1.0
    width: Annotated[int, Within(1, 10000)] = 50  # frames at most

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        width = int(rng.integers(1, self.width, endpoint=True))
        return features[: len(features) - width] if 2 * width < len(features) else features
