"""How labels agree: every figure is read off one table of confusions.

Shapes: N utterances, K classes; the table is (K, K), references by predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np


def confusions(
    references: Sequence[int] | np.ndarray, predictions: Sequence[int] | np.ndarray, num_classes: int
) -> np.ndarray:
    """(K, K) counts: row is what was, column what was said."""
    rows, columns = np.asarray(references, np.int64), np.asarray(predictions, np.int64)
    assert rows.shape == columns.shape
    cells = rows * num_classes + columns
    return np.bincount(cells, minlength=num_classes * num_classes).reshape(num_classes, num_classes)


def accuracy(table: np.ndarray) -> float:
    return _share(float(np.trace(table)), float(table.sum()))


def recalls(table: np.ndarray) -> np.ndarray:
    """(K,) the share of each class that was found; NaN for a class that never was."""
    return _shares(np.diag(table), table.sum(axis=1))


def precisions(table: np.ndarray) -> np.ndarray:
    """(K,) the share of each answer that was right; NaN for one that was never given."""
    return _shares(np.diag(table), table.sum(axis=0))


def f1_scores(table: np.ndarray) -> np.ndarray:
    """(K,) NaN for a class that neither was nor was said."""
    return _shares(2 * np.diag(table), table.sum(axis=0) + table.sum(axis=1))


def balanced_accuracy(table: np.ndarray) -> float:
    """Mean recall of the classes that occur: guessing the commonest does not pay."""
    return _mean_of_known(recalls(table))


def macro_f1(table: np.ndarray) -> float:
    """Mean F1 of the classes that occur or are said."""
    return _mean_of_known(f1_scores(table))


def kappa(table: np.ndarray, weights: Literal["none", "linear", "quadratic"] = "none") -> float:
    """Cohen's agreement beyond chance; weighted, a miss by two grades costs twice or four times one by one."""
    apart = np.abs(np.subtract.outer(np.arange(len(table)), np.arange(len(table)))).astype(np.float64)
    costs = {"none": (apart > 0).astype(np.float64), "linear": apart, "quadratic": apart**2}[weights]
    count = float(table.sum())
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / count if count else np.zeros(table.shape)
    return 1 - _share(float((costs * table).sum()), float((costs * expected).sum()))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _shares(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    shares = np.full(len(parts), np.nan)
    np.divide(parts, wholes, out=shares, where=wholes > 0)
    return shares


def _mean_of_known(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
