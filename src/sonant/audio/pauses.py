"""A recording cut in every pause, as it is read: long silence is left out, no word is cut.

for stretch in segments(blocks, 16000, EnergyDetector(), longest=30 * 16000):
    stretch.samples                                    # a segment, or a part of one that no pause divides
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sonant.audio.voice_activity import Detector, speech_spans

_MARGIN_SECONDS = 0.1  # of silence that is left around speech


@dataclass(frozen=True)
class Stretch:
    """Samples from `first` on; without a pause within the longest segment, the next stretch goes on with it."""

    first: int
    samples: np.ndarray
    is_last: bool  # of its segment


def segments(
    blocks: Iterable[np.ndarray], sample_rate: int, detector: Detector, longest: int, unit: int = 1
) -> Iterator[Stretch]:
    """Segments of at most `longest` samples that begin at multiples of `unit`. They depend on the sound alone, never on
    the blocks it comes in."""
    cutter = _Cutter(sample_rate, detector, longest, unit)
    for block in blocks:
        cutter.held = np.concatenate([cutter.held, block])
        while len(cutter.held) >= longest:
            yield from cutter.cut()
    yield from cutter.finish()


class _Cutter:
    def __init__(self, sample_rate: int, detector: Detector, longest: int, unit: int) -> None:
        self.rate, self.detector, self.longest, self.unit = sample_rate, detector, longest, unit
        self.margin = round(_MARGIN_SECONDS * sample_rate)
        self.held, self.first, self.is_open = np.zeros(0, np.float32), 0, False

    def cut(self) -> Iterator[Stretch]:
        """Of the longest segment that is held: what stands before its last pause, or all where there is none."""
        spans = speech_spans(self.held[: self.longest], self.rate, self.detector)
        if not spans:
            yield from self._closed(self.margin)
            self._drop(max(self.longest - self.margin, self.unit))
            return
        skipped = self._skip_silence(spans)
        spans = [(first - skipped, last - skipped) for first, last in spans]
        pauses = self._pauses(spans, self.longest - skipped)
        if not pauses and not skipped:
            yield Stretch(self.first, self.held[: self._whole(self.longest)], is_last=False)
            self.is_open = True
            self._drop(self.longest)
        yield from self._divided(pauses)

    def _divided(self, pauses: list[tuple[int, int]]) -> Iterator[Stretch]:
        dropped = 0
        for start, end in pauses:
            first, last = start - dropped, end - dropped
            yield Stretch(self.first, self.held[: min(first + self.margin, last)], is_last=True)
            self.is_open = False
            dropped += self._drop(max(last - self.margin, first, self.unit))

    def finish(self) -> Iterator[Stretch]:
        spans = speech_spans(self.held, self.rate, self.detector)
        if not spans:
            yield from self._closed(self.margin)
            return
        skipped = self._skip_silence(spans)
        spans = [(first - skipped, last - skipped) for first, last in spans]
        end = spans[-1][1] + self.margin
        pauses = self._pauses(spans, spans[-1][1])
        before = self.first
        yield from self._divided(pauses)
        yield Stretch(self.first, self.held[: end - (self.first - before)], is_last=True)

    def _closed(self, num_samples: int) -> Iterator[Stretch]:
        """A segment that goes on has its end in silence."""
        if self.is_open:
            yield Stretch(self.first, self.held[:num_samples], is_last=True)
        self.is_open = False

    def _skip_silence(self, spans: list[tuple[int, int]]) -> int:
        """Before a segment; the number of samples."""
        return 0 if self.is_open else self._drop(max(spans[0][0] - self.margin, 0))

    def _pauses(self, spans: list[tuple[int, int]], num_samples: int) -> list[tuple[int, int]]:
        """Those that are no shorter than the detector's own."""
        edges = [(0, 0)] * self.is_open + spans + [(num_samples, num_samples)]
        least = max(self.detector.pause_seconds * self.rate, 1)
        gaps = [(last, first) for (_, last), (first, _) in pairwise(edges)]
        return [(start, end) for start, end in gaps if end - start >= least]

    def _whole(self, num_samples: int) -> int:
        return num_samples // self.unit * self.unit

    def _drop(self, num_samples: int) -> int:
        """From the beginning of what is held, in units."""
        dropped = self._whole(num_samples)
        self.held, self.first = self.held[dropped:], self.first + dropped
        return dropped
