"""An answer as people read it: a text, its words and tokens, each with the frames that say it and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sonant.decoding.paths import Alignment
from sonant.decoding.spelling import Spelling


@dataclass(frozen=True)
class Spoken:
    """A token or a word; seconds are frames times those of one frame."""

    text: str
    start: int  # first frame
    end: int  # frame behind the last
    confidence: float  # a token: its highest probability; a word: the geometric mean of its tokens


@dataclass(frozen=True)
class Hypothesis:
    """One answer; its score is the sum of what recogniser and guide say."""

    ids: tuple[int, ...]
    text: str
    log_prob: float
    guidance: float
    tokens: tuple[Spoken, ...]
    words: tuple[Spoken, ...]

    @property
    def score(self) -> float:
        return self.log_prob + self.guidance

    @property
    def confidence(self) -> float:
        """The geometric mean of the tokens; of nothing said, that nothing was."""
        return _mean([token.confidence for token in self.tokens]) if self.tokens else float(np.exp(self.log_prob))


def hypothesis_of(
    ids: Sequence[int], alignment: Alignment, spelling: Spelling, log_prob: float, guidance: float = 0.0
) -> Hypothesis:
    tokenizer = spelling.tokenizer
    spans = zip(ids, alignment.starts.tolist(), alignment.ends.tolist(), np.exp(alignment.peaks).tolist(), strict=True)
    tokens = tuple(Spoken(tokenizer.symbols[id], start, end, confidence) for id, start, end, confidence in spans)
    return Hypothesis(
        tuple(ids), tokenizer.decode(ids).strip(), log_prob, guidance, tokens, tuple(_words(ids, tokens, spelling))
    )


def _words(ids: Sequence[int], tokens: Sequence[Spoken], spelling: Spelling) -> list[Spoken]:
    words = []
    for first, behind in pairwise([*spelling.word_starts(ids), len(ids)]):
        told = [place for place in range(first, behind) if not spelling.divides(ids[place])]
        text = spelling.tokenizer.decode(ids[place] for place in told).strip()
        if text:
            some = [tokens[place] for place in told]
            words.append(Spoken(text, some[0].start, some[-1].end, _mean([token.confidence for token in some])))
    return words


def _mean(confidences: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(confidences))))
