"""The best answers are read again by a judge of whole texts, such as a causal language model, and put in a new order.

config = tune_rescoring(answers, judge, references)    # on a development set
better = rescore(other_answers, judge, config)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated

import numpy as np

from sonant.base.bounds import Within, check_fields
from sonant.decoding.hypotheses import Hypothesis
from sonant.metrics.edits import word_edits

Judge = Callable[[Sequence[str]], Sequence[float] | np.ndarray]  # the log-probability of each text
Answers = Sequence[Sequence[Hypothesis]]  # of each utterance, best first


@dataclass(frozen=True, kw_only=True)
class RescoringConfig:
    """What a judge's word counts beside the score of the search."""

    weight: Annotated[float, Within(0, 100)] = 0.3
    word_bonus: Annotated[float, Within(-100, 100)] = 0.0  # for each word: judges prefer few

    def __post_init__(self) -> None:
        check_fields(self)


def rescore(answers: Answers, judge: Judge, config: RescoringConfig | None = None) -> list[list[Hypothesis]]:
    """The same answers, best first; what the judge adds joins their guidance. Each text is read once."""
    config = config or RescoringConfig()
    judged = _judged(answers, judge)
    rescored = [
        [replace(one, guidance=one.guidance + _addition(one, judged, config)) for one in some] for some in answers
    ]
    return [sorted(some, key=lambda one: -one.score) for some in rescored]


def tune_rescoring(
    answers: Answers,
    judge: Judge,
    references: Sequence[str],
    weights: Sequence[float] = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
    word_bonuses: Sequence[float] = (0.0, 0.5, 1.0, 2.0),
) -> RescoringConfig:
    """The setting with the fewest word errors in all; of equal ones, the smallest."""
    judged = _judged(answers, judge)
    tried = []
    for weight, word_bonus in product(sorted(weights), sorted(word_bonuses)):
        config = RescoringConfig(weight=weight, word_bonus=word_bonus)
        tried.append((_errors(answers, judged, references, config), weight, word_bonus))
    _, weight, word_bonus = min(tried)
    return RescoringConfig(weight=weight, word_bonus=word_bonus)


def _judged(answers: Answers, judge: Judge) -> dict[str, float]:
    texts = list(dict.fromkeys(one.text for some in answers for one in some))
    return dict(zip(texts, map(float, judge(texts)), strict=True)) if texts else {}


def _addition(one: Hypothesis, judged: dict[str, float], config: RescoringConfig) -> float:
    return config.weight * judged[one.text] + config.word_bonus * len(one.words)


def _errors(answers: Answers, judged: dict[str, float], references: Sequence[str], config: RescoringConfig) -> int:
    errors = 0
    for some, reference in zip(answers, references, strict=True):
        best = max(some, key=lambda one: one.score + _addition(one, judged, config), default=None)
        errors += word_edits(reference, best.text if best else "").errors
    return errors
