"""Scores of frames become answers: the best token of each frame, or a search over texts.

Shapes: log-probabilities (B, T, V) of a recogniser, with the true number of frames of each row.
"""

from __future__ import annotations

import numpy as np

from sonant.base.lengths import Lengths
from sonant.decoding.alignment import align
from sonant.decoding.guide import Guide
from sonant.decoding.hypotheses import Hypothesis, hypothesis_of
from sonant.decoding.paths import Alignment
from sonant.decoding.prefix_beam import BeamConfig, Prefix, search_prefixes
from sonant.decoding.scores import check_scores
from sonant.decoding.spelling import Spelling


def decode_greedily(log_probs: np.ndarray, lengths: Lengths, spelling: Spelling) -> list[Hypothesis]:
    """The best token of each frame: equal neighbours are one, blanks are none."""
    check_scores(log_probs, lengths)
    allowed = np.where(spelling.is_silent, -np.inf, log_probs) if spelling.is_silent.any() else log_probs
    best = allowed.argmax(axis=2) if allowed.size else np.zeros(allowed.shape[:2], np.int64)
    peaks = np.take_along_axis(log_probs, best[:, :, None], axis=2)[:, :, 0]
    return [
        _of_path(best[row, :num_frames], peaks[row, :num_frames], spelling)
        for row, num_frames in enumerate(np.asarray(lengths.values).tolist())
    ]


def decode_by_search(
    log_probs: np.ndarray,
    lengths: Lengths,
    spelling: Spelling,
    config: BeamConfig | None = None,
    guide: Guide | None = None,
    num_best: int = 1,
) -> list[list[Hypothesis]]:
    """Up to `num_best` different texts for each row, best first, with the times of their likeliest paths."""
    chosen = best_prefixes(log_probs, lengths, spelling, config, guide, num_best)
    rows = [row for row, prefixes in enumerate(chosen) for _ in prefixes]
    flat = [prefix for prefixes in chosen for prefix in prefixes]
    paths = iter(align(log_probs, lengths, [prefix.ids for prefix in flat], spelling.blank_id, rows))
    return [[_answer(prefix, next(paths), spelling) for prefix in prefixes] for prefixes in chosen]


def best_prefixes(
    log_probs: np.ndarray,
    lengths: Lengths,
    spelling: Spelling,
    config: BeamConfig | None = None,
    guide: Guide | None = None,
    num_best: int = 1,
) -> list[list[Prefix]]:
    """The same texts for each row without their times, which take longer to find."""
    check_scores(log_probs, lengths)
    found = search_prefixes(log_probs, lengths, spelling, config, guide)
    return [_different(prefixes, spelling, num_best) for prefixes in found]


def _of_path(path: np.ndarray, peaks: np.ndarray, spelling: Spelling) -> Hypothesis:
    starts = np.flatnonzero(np.diff(path, prepend=-1))
    highest = np.maximum.reduceat(peaks, starts) if len(starts) else peaks
    ends = np.append(starts[1:], len(path))
    is_said = path[starts] != spelling.blank_id
    log_prob = float(peaks.sum())
    alignment = Alignment(log_prob, starts[is_said], ends[is_said], highest[is_said])
    return hypothesis_of(path[starts[is_said]].tolist(), alignment, spelling, log_prob)


def _different(prefixes: list[Prefix], spelling: Spelling, num_best: int) -> list[Prefix]:
    """Two prefixes may write one text, with another number of spaces: the better one stays."""
    texts: dict[str, Prefix] = {}
    for prefix in prefixes:
        texts.setdefault(" ".join(spelling.tokenizer.decode(prefix.ids).split()), prefix)
        if len(texts) == num_best:
            break
    return list(texts.values())


def _answer(prefix: Prefix, path: Alignment | None, spelling: Spelling) -> Hypothesis:
    """Without frames there is no path, and nothing is said."""
    path = path or Alignment(0.0, *[np.zeros(0, np.int64)] * 3)
    return hypothesis_of(prefix.ids, path, spelling, prefix.log_prob, prefix.guidance)
