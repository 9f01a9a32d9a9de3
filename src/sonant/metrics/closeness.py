"""How close ratings come: correlations, agreement and distances of predicted and true numbers (N,).

A correlation with something constant is NaN: there is nothing to follow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Numbers = Sequence[float] | np.ndarray


def pearson(references: Numbers, predictions: Numbers) -> float:
    """How well a straight line, rising or falling, leads from one to the other."""
    a, b = _centred(references), _centred(predictions)
    return _quotient(float(a @ b), float(np.sqrt(a @ a) * np.sqrt(b @ b)))


def spearman(references: Numbers, predictions: Numbers) -> float:
    """Pearson of the ranks: how well the order is kept, whatever the scale."""
    return pearson(ranks(references), ranks(predictions))


def concordance(references: Numbers, predictions: Numbers) -> float:
    """Lin's coefficient: Pearson, lowered by every difference in mean and spread."""
    a, b = _centred(references), _centred(predictions)
    shift = float(np.mean(references) - np.mean(predictions)) if len(a) else 0.0
    return _quotient(2 * float(a @ b), float(a @ a + b @ b) + len(a) * shift**2)


def mean_absolute_error(references: Numbers, predictions: Numbers) -> float:
    apart = np.abs(_numbers(references) - _numbers(predictions))
    return float(apart.mean()) if apart.size else float("nan")


def root_mean_square_error(references: Numbers, predictions: Numbers) -> float:
    apart = _numbers(references) - _numbers(predictions)
    return float(np.sqrt(np.mean(apart**2))) if apart.size else float("nan")


def ranks(values: Numbers) -> np.ndarray:
    """From 1; equal values share the mean of their places."""
    numbers = _numbers(values)
    ordered = np.sort(numbers)
    first, behind = ordered.searchsorted(numbers, "left"), ordered.searchsorted(numbers, "right")
    return (first + behind + 1) / 2


def roc_area(is_positive: Sequence[bool] | np.ndarray, scores: Numbers) -> float:
    """How often a positive scores above a negative, equal ones counted half; NaN without one of both."""
    positive = np.asarray(is_positive, bool)
    num_positive, num_negative = int(positive.sum()), int((~positive).sum())
    wins = float(ranks(scores)[positive].sum()) - num_positive * (num_positive + 1) / 2
    return _quotient(wins, float(num_positive * num_negative))


def _numbers(values: Numbers) -> np.ndarray:
    return np.asarray(values, np.float64)


def _centred(values: Numbers) -> np.ndarray:
    """Exactly zero where all values are equal: rounding must not look like a spread."""
    numbers = _numbers(values)
    if not numbers.size or np.all(numbers == numbers[0]):
        return np.zeros(len(numbers))
    centred: np.ndarray = numbers - numbers.mean()
    return centred


def _quotient(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
