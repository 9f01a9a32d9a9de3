"""Long recordings in overlapping windows, whose scores join to those of the whole without a seam.

Each window is scored with frames of context on both sides that are then dropped; a recogniser that sees no further
than that context gives the scores of the whole. Shapes: T frames of the whole, V tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Annotated

import numpy as np

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.base.lengths import samples_before


@dataclass(frozen=True, kw_only=True)
class WindowConfig:
    """In frames of the recogniser."""

    frames: Annotated[int, Within(1, 1_000_000)] = 1500  # 30 s at 20 ms
    context: Annotated[int, Within(0, 1_000_000)] = 200  # scored on each side and dropped

    def __post_init__(self) -> None:
        check_fields(self)
        if 2 * self.context >= self.frames:
            problem = f"{self.context} frames on both sides leave nothing of {self.frames}."
            raise ConfigError("context", problem, "Give less than half of the window.")


@dataclass(frozen=True)
class Window:
    """Frames `start` to `end` are scored, those from `kept_start` to `kept_end` are used."""

    start: int
    end: int
    kept_start: int
    kept_end: int

    def samples(self, kernels: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
        """The samples, from the first to behind the last, that give exactly the scored frames."""
        first = self.start * prod(strides)
        return first, first + samples_before(self.end - self.start, kernels, strides)


def plan_windows(num_frames: int, config: WindowConfig | None = None) -> list[Window]:
    """Windows of equal size (but for one alone) whose kept parts stand side by side and cover every frame."""
    config = config or WindowConfig()
    if num_frames <= config.frames:
        return [Window(0, num_frames, 0, num_frames)] if num_frames else []
    step = config.frames - 2 * config.context
    starts = [*range(0, num_frames - config.frames, step), num_frames - config.frames]
    seams = [0, *(start + config.context for start in starts[1:]), num_frames]
    return [Window(start, start + config.frames, *seam) for start, seam in zip(starts, pairwise(seams), strict=True)]


def stitch(windows: Sequence[Window], scores: Iterable[np.ndarray]) -> np.ndarray:
    """(T, V) from the scores (frames, V) of each window, of one at least; rows behind a window's frames are padding."""
    return np.concatenate(
        [
            part[window.kept_start - window.start : window.kept_end - window.start]
            for window, part in zip(windows, scores, strict=True)
        ]
    )
