"""When the words of a given text are said: forced alignment, with the words as the text writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np

from sonant.base.errors import TextError
from sonant.base.lengths import Lengths, frames_needed_by_ctc
from sonant.decoding.alignment import align as likeliest_path
from sonant.decoding.paths import Alignment
from sonant.decoding.scores import LEAST
from sonant.decoding.spelling import Spelling
from sonant.decoding.written import Written, read_written
from sonant.inference.scored import Scored
from sonant.inference.transcripts import Line, Transcript, Word


def align(scored: Scored, text: str, spelling: Spelling) -> Transcript:
    """The text of a recording with the times of its words and tokens, and how well it fits."""
    where, written = scored.audio or "the samples", read_written(text, spelling)
    if not written.words:
        told = f"nothing of '{text.strip()[:40]}' can be written" if text.strip() else "its text is empty"
        raise TextError(where, f"{told}, so there is nothing to align.", "Give it the text of what is said.")
    num_frames, needed = len(scored.log_probs), frames_needed_by_ctc(written.ids)
    if num_frames < needed:  # some people speak faster than frames come: each is taken for two
        scored = replace(scored, frame_seconds=scored.frame_seconds / 2, log_probs=scored.log_probs.repeat(2, axis=0))
    lengths = Lengths(np.array([len(scored.log_probs)]))
    found = likeliest_path(scored.log_probs[None], lengths, [written.ids], spelling.blank_id)[0]
    if found is None:
        problem = (
            f"its text needs {needed:,} frames, more than twice the {num_frames:,} that {scored.seconds:.2f} s have."
        )
        raise TextError(where, problem, "Check that the text belongs to it, and is not longer than what is said.")
    words = _words(written, found, scored)
    costs = _costs(written, found, scored.log_probs, spelling.blank_id) * (num_frames / len(scored.log_probs))
    return Transcript(
        audio=scored.audio,
        seconds=scored.seconds,
        text=text.strip(),
        confidence=_confidence(found.peaks),
        words=words,
        tokens=_tokens(written, found, scored, spelling),
        lines=_lines(written, words, found, costs),
        skipped=written.skipped,
        score=_score(costs, 0, len(costs), len(written.ids)),
    )


def _words(written: Written, found: Alignment, scored: Scored) -> tuple[Word, ...]:
    return tuple(_spoken(word.text, word.first, word.behind, found, scored) for word in written.words)


def _tokens(written: Written, found: Alignment, scored: Scored, spelling: Spelling) -> tuple[Word, ...]:
    """Those of words; what only parts two words is said nowhere."""
    places = [place for word in written.words for place in range(word.first, word.behind)]
    symbols = spelling.tokenizer.symbols
    return tuple(_spoken(symbols[written.ids[place]], place, place + 1, found, scored) for place in places)


def _lines(written: Written, words: Sequence[Word], found: Alignment, costs: np.ndarray) -> tuple[Line, ...]:
    """None for a text of one line, which is the text itself; what lies between two belongs half to each."""
    groups = [list(pairs) for _, pairs in groupby(zip(written.words, words, strict=True), lambda pair: pair[0].line)]
    if len(groups) < 2:
        return ()
    firsts, behinds = [group[0][0].first for group in groups], [group[-1][0].behind for group in groups]
    seams = [(int(found.ends[a - 1]) + int(found.starts[b])) // 2 for a, b in zip(behinds, firsts[1:], strict=False)]
    lines = []
    for group, first, behind, span in zip(groups, firsts, behinds, pairwise([0, *seams, len(costs)]), strict=True):
        said = [word for _, word in group]
        text, confidence = " ".join(word.text for word in said), _confidence(found.peaks[first:behind])
        number, score = group[0][0].line + 1, _score(costs, *span, behind - first)
        lines.append(Line(number, text, said[0].start, said[-1].end, confidence, score))
    return tuple(lines)


def _spoken(text: str, first: int, behind: int, found: Alignment, scored: Scored) -> Word:
    start, end = int(found.starts[first]), int(found.ends[behind - 1])
    seconds = scored.frame_seconds
    return Word(text, start * seconds, min(end * seconds, scored.seconds), _confidence(found.peaks[first:behind]))


def _confidence(peaks: np.ndarray) -> float:
    """The geometric mean of the tokens."""
    return float(np.exp(peaks.mean()))


def _costs(written: Written, found: Alignment, log_probs: np.ndarray, blank_id: int) -> np.ndarray:
    """(T,) nats by which each frame of the path is less likely than the likeliest symbol there."""
    path = np.full(len(log_probs), blank_id)
    for id, start, end in zip(written.ids, found.starts.tolist(), found.ends.tolist(), strict=True):
        path[start:end] = id
    taken = np.maximum(log_probs[np.arange(len(path)), path], LEAST)
    return np.asarray(np.minimum(taken - log_probs.max(axis=1), 0), np.float64)


def _score(costs: np.ndarray, start: int, end: int, num_tokens: int) -> float:
    """Nats a token by which a text is less likely than what the model would write itself: 0 is the best."""
    return float(costs[start:end].sum()) / num_tokens
