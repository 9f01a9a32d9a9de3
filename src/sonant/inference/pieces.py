"""A recording, as it is read, in pieces that a recogniser hears at once: whole where it is short, else in windows.

Long recordings are heard in windows that overlap; or, with a detector of voices, in segments between pauses, of which
only those that no pause divides need windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sonant.audio.pauses import Stretch, segments
from sonant.audio.voice_activity import Detector


@dataclass(frozen=True, eq=False)
class Piece:
    """Samples (N,) that are scored at once."""

    samples: np.ndarray
    segment: int  # frame of the recording that its segment begins at
    start: int  # its first frame in the segment
    is_last: bool  # of its segment
    num_new: int  # samples that no piece before it has


@dataclass(frozen=True)
class Cut:
    """How recordings are cut for a model; windows and their context count frames."""

    model: Any
    window: int
    context: int
    detector: Detector | None

    def __call__(self, blocks: Iterable[np.ndarray]) -> Iterator[Piece]:
        """The pieces of a recording in order, from blocks of samples at the model's rate; none of what is silent."""
        if self.detector is None:
            stretches = _as_one(blocks)
        else:
            unit, rate = self.model.samples_per_frame, self.model.sample_rate
            stretches = segments(blocks, rate, self.detector, self._window_samples // unit * unit, unit)
        windows = _Windows(self, 0)
        for stretch in stretches:
            if windows.is_empty:
                windows = _Windows(self, stretch.first)
            yield from windows.push(stretch.samples)
            if stretch.is_last:
                yield windows.last()
                windows = _Windows(self, 0)

    @cached_property
    def _window_samples(self) -> int:
        """The fewest samples that give the frames of a window."""
        count = self.model.num_frames
        high = self.window * self.model.samples_per_frame
        while count(high) < self.window:
            high *= 2
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if count(middle) >= self.window else (middle, high)
        return int(high)


def _as_one(blocks: Iterable[np.ndarray]) -> Iterator[Stretch]:
    position = 0
    for block in blocks:
        yield Stretch(position, block, is_last=False)
        position += len(block)
    yield Stretch(position, np.zeros(0, np.float32), is_last=True)


class _Windows:
    """Windows of one segment: all of equal size, the last one ending with the segment."""

    def __init__(self, cut: Cut, first: int) -> None:
        self.cut, self.unit = cut, cut.model.samples_per_frame
        self.segment = first // self.unit
        self.held: list[np.ndarray] = []
        self.first, self.count = 0, 0  # sample of what is held, and how many there were in all
        self.start = self.heard = 0  # frame of the next window; samples that windows have already

    @property
    def is_empty(self) -> bool:
        return not self.count

    def push(self, samples: np.ndarray) -> Iterator[Piece]:
        self.held.append(samples)
        self.count += len(samples)
        while self.cut.model.num_frames(self.count) > self.start + self.cut.window:
            yield self._piece(self.start, is_last=False)
            keep = self.start * self.unit - self.first  # the last window begins behind this one
            self.held, self.first = [self.held[0][keep:]], self.first + keep
            self.start += self.cut.window - 2 * self.cut.context

    def last(self) -> Piece:
        if self.start == 0:
            samples = np.concatenate(self.held)
            return Piece(samples, self.segment, 0, is_last=True, num_new=self.count)
        return self._piece(int(self.cut.model.num_frames(self.count)) - self.cut.window, is_last=True)

    def _piece(self, start: int, *, is_last: bool) -> Piece:
        self.held = [np.concatenate(self.held)]
        first = start * self.unit
        samples = self.held[0][first - self.first :][: self.cut._window_samples]
        num_new = (self.count if is_last else first + len(samples)) - self.heard
        self.heard += num_new
        return Piece(samples, self.segment, start, is_last, num_new)
