"""What `sonant evaluate` and `sonant.evaluate` do: BUNDLE + data -> figures with intervals, and a row an utterance."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonant.base.errors import UsageError
from sonant.checkpoints.bundle import open_bundle
from sonant.evaluation.table import Evaluation
from sonant.metrics.intervals import BootstrapConfig, Interval
from sonant.recipes.catalogue import absolute

# Each is a module with evaluate, figures and intervals.
EVALUATIONS = {
    "language": "sonant.recipes.language_evaluation",
    "ctc": "sonant.recipes.ctc_evaluation",
    "pretrain": "sonant.recipes.pretrain_evaluation",
}


@dataclass(frozen=True)
class EvaluateResult:
    """Figures of a bundle on data."""

    bundle: str
    figures: Mapping[str, float]
    intervals: Mapping[str, Interval]  # of those that rows add up to
    evaluation: Evaluation

    def as_dict(self) -> dict[str, Any]:
        """Plain values for programs."""
        facts = vars(self.evaluation.facts)
        bounds = {name: [found.low, found.high] for name, found in self.intervals.items() if found.low == found.low}
        rows = len(self.evaluation.rows)
        return {"bundle": self.bundle, **facts, "rows": rows, "figures": dict(self.figures), "intervals": bounds}


def evaluation_page(
    result: EvaluateResult, *data: str, by: Sequence[str] = (), bootstrap: BootstrapConfig | None = None
) -> str:
    """A page of what was measured, where the task has one; `by` are columns of the manifest to group by."""
    opened = open_bundle(result.bundle)
    module = importlib.import_module(EVALUATIONS[opened.description.task])
    if not hasattr(module, "page"):
        problem = f"an evaluation of '{opened.description.task}' has no page."
        raise UsageError(result.bundle, problem, "Leave --report and --by out.")
    places = [absolute(place) for place in data]
    found: str = module.page(opened, places, result.evaluation, by, bootstrap or BootstrapConfig())
    return found


def evaluate(
    bundle: str,
    *data: str,
    split: str | None = None,
    bootstrap: BootstrapConfig | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
) -> EvaluateResult:
    """Measures a bundle on data, or, without any, on what its training validated with."""
    opened = open_bundle(bundle)
    task = opened.description.task
    if task not in EVALUATIONS:
        raise UsageError(
            bundle, f"a bundle of '{task}' cannot be evaluated.", f"Name one of: {', '.join(EVALUATIONS)}."
        )
    module = importlib.import_module(EVALUATIONS[task])
    found: Evaluation = module.evaluate(opened, [absolute(place) for place in data], split, device, say)
    figures = module.figures(found)
    return EvaluateResult(bundle, figures, module.intervals(found, bootstrap or BootstrapConfig()), found)
