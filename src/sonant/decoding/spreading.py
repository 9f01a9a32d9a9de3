"""Times for a text that was written without any: its letters are spread evenly over the sound in which somebody speaks.

They are estimates: right to a word or so in a sentence, and never outside of the speech.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sonant.decoding.hypotheses import Hypothesis, hypothesis_of
from sonant.decoding.paths import Alignment
from sonant.decoding.spelling import Spelling

Spans = Sequence[tuple[int, int]]  # first frame, and the one behind the last


def spread(
    ids: Sequence[int], log_probs: Sequence[float], log_prob: float, spans: Spans, spelling: Spelling
) -> Hypothesis:
    """An answer, of which each token's probability is known, over the frames in which somebody speaks."""
    sizes = [max(len(spelling.tokenizer.symbols[id]), 1) for id in ids]
    edges = np.concatenate([[0.0], np.cumsum(sizes)]) / max(sum(sizes), 1)
    lengths = np.array([last - first for first, last in spans], np.float64)
    behind = np.concatenate([[0.0], np.cumsum(lengths)])  # frames of speech before each span
    places = edges * behind[-1]
    starts = [_frame(place, spans, behind, is_end=False) for place in places[:-1]]
    ends = [_frame(place, spans, behind, is_end=True) for place in places[1:]]
    alignment = Alignment(log_prob, np.array(starts, np.int64), np.array(ends, np.int64), np.array(log_probs))
    return hypothesis_of(list(ids), alignment, spelling, log_prob)


def _frame(place: float, spans: Spans, behind: np.ndarray, *, is_end: bool) -> int:
    """Between two spans a token begins in the later one, and ends in the one before."""
    number = int(np.searchsorted(behind, place, side="left" if is_end else "right")) - 1
    number = min(max(number, 0), len(spans) - 1)
    return round(spans[number][0] + place - float(behind[number]))
