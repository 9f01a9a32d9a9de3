"""Prefix beam search: the likeliest texts of CTC scores, with or without what is known of words.

prefixes = search_prefixes(log_probs, lengths, spelling, BeamConfig(width=10), guide)    # best first, by utterance
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from sonant.base.bounds import Within, check_fields
from sonant.base.lengths import Lengths
from sonant.decoding.beam_search import Search, close_words
from sonant.decoding.beams import Beams
from sonant.decoding.frames import FrameConfig, frames_of
from sonant.decoding.guide import Guide
from sonant.decoding.spelling import Spelling

_UTTERANCES_AT_ONCE = 256  # more would not fill the processor better
_CELLS = 1 << 25  # scores that are searched at once, unless one utterance has more: 128 MB


@dataclass(frozen=True, kw_only=True)
class BeamConfig:
    """How much is kept at each step."""

    width: Annotated[int, Within(1, 10_000)] = 10  # prefixes
    window: Annotated[float, Within(0, 1e9)] = 12.0  # nats below the best prefix
    frames: FrameConfig = field(default_factory=FrameConfig)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Prefix:
    """One answer of the search."""

    ids: tuple[int, ...]
    log_prob: float  # of all its paths that were followed
    guidance: float  # what the guide adds

    @property
    def score(self) -> float:
        return self.log_prob + self.guidance


def search_prefixes(
    log_probs: np.ndarray,
    lengths: Lengths,
    spelling: Spelling,
    config: BeamConfig | None = None,
    guide: Guide | None = None,
) -> list[list[Prefix]]:
    """From log-probabilities (B, T, V): up to `width` answers for each utterance, best first."""
    config = config or BeamConfig()
    values = np.asarray(lengths.values)
    found: list[list[Prefix]] = [[] for _ in range(len(values))]
    alike = np.argsort(-values, kind="stable")
    start = 0
    while start < len(alike):
        longest = int(values[alike[start]])
        fitting = _CELLS // max(1, longest * log_probs.shape[2])
        rows = alike[start : start + min(max(1, fitting), _UTTERANCES_AT_ONCE)]
        start += len(rows)
        part = log_probs[rows, :longest]
        for row, prefixes in zip(
            rows.tolist(), _search(part, Lengths(values[rows]), spelling, config, guide), strict=True
        ):
            found[row] = prefixes
    return found


def _search(
    log_probs: np.ndarray, lengths: Lengths, spelling: Spelling, config: BeamConfig, guide: Guide | None
) -> list[list[Prefix]]:
    frames = frames_of(log_probs, lengths, spelling.blank_id, spelling.is_silent, config.frames)
    search = Search(frames, spelling.blank_id, config.width, config.window, guide)
    found: list[list[Prefix]] = [[] for _ in range(len(log_probs))]
    beams = search.run()
    logs = np.logaddexp(beams.blank, beams.spoken) + frames.skipped.take(beams.utterance)
    rows, guidance = frames.order.take(beams.utterance), _guidance(beams, guide)
    answers = zip(rows.tolist(), search.prefixes(beams), logs.tolist(), guidance.tolist(), strict=True)
    for row, ids, log_prob, guided in answers:
        found[row].append(Prefix(ids, log_prob, guided))
    return [_ranked(prefixes, spelling) for prefixes in found]


def _guidance(beams: Beams, guide: Guide | None) -> np.ndarray:
    """The last word and the text end with the utterance."""
    if guide is None:
        return np.zeros(len(beams.trail))
    close_words(beams, np.arange(len(beams.trail)), guide)
    return np.asarray(beams.closed + beams.closing + guide.end(beams.next_state))


def _ranked(prefixes: list[Prefix], spelling: Spelling) -> list[Prefix]:
    """Best first; where a lexicon is left by all, the unfinished word is left out of each."""
    if not any(np.isfinite(prefix.score) for prefix in prefixes):
        prefixes = [_without_last_word(prefix, spelling) for prefix in prefixes]
    known = [prefix for prefix in prefixes if np.isfinite(prefix.score)]
    return sorted(known, key=lambda prefix: -prefix.score)


def _without_last_word(prefix: Prefix, spelling: Spelling) -> Prefix:
    starts = spelling.word_starts(prefix.ids)
    return Prefix(prefix.ids[: starts[-1]] if starts else (), prefix.log_prob, 0.0)
