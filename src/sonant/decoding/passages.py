"""Long scores in passages that are searched one by one: cut in pauses, and joined to answers of the whole.

Shapes: T frames, V tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import log

import numpy as np

from sonant.decoding.hypotheses import Hypothesis, Spoken, hypothesis_of
from sonant.decoding.paths import Alignment
from sonant.decoding.spelling import Spelling

_Chain = tuple[float, str, tuple[Hypothesis, ...]]  # score and text so far, an answer of each passage


@dataclass(frozen=True, eq=False)
class Passage:
    """Scores (T, V) from a frame of the recording on."""

    start: int
    log_probs: np.ndarray
    is_new: bool  # nothing was heard right before it: a word ends there


class PassageCutter:
    """Takes rows as they come; what is no longer than `longest` frames is never cut. `ends_words` says that a word ends
    with each passage, as it does for whoever searches with what is known of words."""

    def __init__(self, spelling: Spelling, longest: int, *, ends_words: bool = False) -> None:
        self.blank_id, self.longest, self.ends_words = spelling.blank_id, longest, ends_words
        self.is_pause = np.array([id == self.blank_id or spelling.divides(id) for id in range(spelling.tokenizer.size)])
        self._held: list[np.ndarray] = []
        self._start, self._is_new = 0, True

    def begin(self, start: int) -> None:
        """What comes now stands behind a gap."""
        assert not self._held
        self._start, self._is_new = start, True

    def push(self, rows: np.ndarray) -> list[Passage]:
        """The passages that are whole."""
        self._held.append(rows)
        found = []
        while sum(map(len, self._held)) > self.longest:
            held = np.concatenate(self._held)
            end = self._cut(held[: self.longest + 1].argmax(axis=1))
            self._held = [held[end:]]
            found.append(self._passage(held[:end]))
        return found

    def finish(self) -> list[Passage]:
        held, self._held = self._held, []
        return [self._passage(np.concatenate(held))] if held else []

    def _passage(self, rows: np.ndarray) -> Passage:
        passage = Passage(self._start, rows, self._is_new)
        self._start, self._is_new = self._start + len(rows), self.ends_words
        return passage

    def _cut(self, path: np.ndarray) -> int:
        """Within the longest pause of the later half; without any, between two symbols; each symbol stays whole."""
        first = len(path) // 2
        edges = np.flatnonzero(np.diff(np.concatenate([[False], self.is_pause[path[first:]], [False]])))
        middle = len(path) - 1
        if len(edges):
            starts, ends = edges[::2], edges[1::2]
            longest = int((ends - starts).argmax())
            middle = first + int(starts[longest] + ends[longest]) // 2
        apart = np.flatnonzero((path[1:] != path[:-1]) | (path[1:] == self.blank_id)) + 1
        return int(apart[np.abs(apart - middle).argmin()]) if len(apart) else middle


def join_answers(
    parts: Sequence[tuple[Passage, Sequence[Hypothesis]]], spelling: Spelling, num_best: int = 1
) -> list[Hypothesis]:
    """The best answers of a recording, from those of its passages, best first; without a passage nothing is said."""
    if len(parts) == 1 and not parts[0][0].start:
        return list(parts[0][1])
    chosen: list[_Chain] = [(0.0, "", ())]
    for _, answers in parts:
        longer: dict[str, _Chain] = {}
        for (score, text, chain), one in product(chosen, answers):
            found = score + one.score, f"{text} {one.text}".strip(), (*chain, one)
            longer[found[1]] = max(found, longer.get(found[1], found), key=lambda chain: chain[0])
        chosen = sorted(longer.values(), key=lambda chain: -chain[0])[:num_best]
    passages = [passage for passage, _ in parts]
    return [_joined(passages, chain, spelling) for _, _, chain in chosen]


def _joined(passages: Sequence[Passage], answers: Sequence[Hypothesis], spelling: Spelling) -> Hypothesis:
    """Where passages touch, a word may go on from one to the next; behind a gap another one begins."""
    runs: list[list[tuple[int, Hypothesis]]] = []
    for passage, answer in zip(passages, answers, strict=True):
        if passage.is_new or not runs:
            runs.append([])
        runs[-1].append((passage.start, answer))
    spoken = [_run(run, spelling) for run in runs]
    return Hypothesis(
        tuple(id for one in spoken for id in one.ids),
        " ".join(one.text for one in spoken if one.text),
        sum(one.log_prob for one in spoken),
        sum(one.guidance for one in spoken),
        tuple(token for one in spoken for token in one.tokens),
        tuple(word for one in spoken for word in one.words),
    )


def _run(run: Sequence[tuple[int, Hypothesis]], spelling: Spelling) -> Hypothesis:
    tokens = [_later(token, start) for start, one in run for token in one.tokens]
    alignment = Alignment(
        0.0,
        np.array([token.start for token in tokens], np.int64),
        np.array([token.end for token in tokens], np.int64),
        np.array([log(max(token.confidence, 1e-300)) for token in tokens]),
    )
    ids = [id for _, one in run for id in one.ids]
    log_prob, guidance = sum(one.log_prob for _, one in run), sum(one.guidance for _, one in run)
    return hypothesis_of(ids, alignment, spelling, log_prob, guidance)


def _later(spoken: Spoken, frames: int) -> Spoken:
    return Spoken(spoken.text, spoken.start + frames, spoken.end + frames, spoken.confidence)
