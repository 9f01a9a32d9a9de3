"""What is told of an evaluation of any recogniser: its figures, its groups, its page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sonant.base import config as configs
from sonant.checkpoints.bundle import Bundle
from sonant.corpus.manifest import Corpus
from sonant.evaluation.breakdown import Group, broken_down
from sonant.evaluation.recognition import recognition_figures
from sonant.evaluation.recognition_page import recognition_page
from sonant.evaluation.table import Evaluation
from sonant.metrics.intervals import BootstrapConfig, Interval
from sonant.recipes.speech import CorporaConfig, measured_corpora


def page(
    bundle: Bundle,
    data: Sequence[str],
    evaluation: Evaluation,
    by: Sequence[str],
    bootstrap: BootstrapConfig,
) -> str:
    """A page to read; `by` are columns of the manifest, or labels, that utterances are grouped by."""
    values = _grouping(bundle, data, evaluation, by)
    return recognition_page(bundle.folder, evaluation, intervals(evaluation, bootstrap), values, bootstrap)


def groups(
    bundle: Bundle, data: Sequence[str], evaluation: Evaluation, by: Sequence[str], bootstrap: BootstrapConfig
) -> dict[str, list[Group]]:
    """The same groups by themselves."""
    values = _grouping(bundle, data, evaluation, by)
    return {column: broken_down(evaluation, found, bootstrap) for column, found in values.items()}


def _grouping(
    bundle: Bundle, data: Sequence[str], evaluation: Evaluation, by: Sequence[str]
) -> dict[str, dict[str, str]]:
    found, _ = corpora_of(bundle, data, evaluation.facts.split)
    return {column: _values(found, column) for column in by}


def corpora_of(bundle: Bundle, data: Sequence[str], split: str | None) -> tuple[list[Corpus], str]:
    corpora = configs.from_dict(CorporaConfig, bundle.description.evaluation["corpora"], bundle.folder)
    return measured_corpora(corpora, data, split)


def _values(corpora: Sequence[Corpus], column: str) -> dict[str, str]:
    """The value of each utterance by id; numbers as they are written."""
    found: dict[str, str] = {}
    for corpus in corpora:
        values = corpus.column(column)
        found |= {str(id): _written(value) for id, value in zip(corpus.column("id"), values, strict=True)}
    return found


def _written(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "unknown"
    return f"{value:g}" if isinstance(value, float) else str(value)


def figures(evaluation: Evaluation) -> dict[str, float]:
    """Those of the training, by the same names."""
    return recognition_figures(evaluation.rows)


def intervals(evaluation: Evaluation, config: BootstrapConfig) -> dict[str, Interval]:
    """By speaker."""
    return {measure: evaluation.interval(measure, config) for measure in evaluation.measures}
