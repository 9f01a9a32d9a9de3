"""What `sonant evaluate` and `sonant.evaluate` do: BUNDLE + data -> figures with intervals, and a row an utterance."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonant.base.errors import UsageError
from sonant.base.overrides import Given
from sonant.checkpoints.bundle import Bundle, open_bundle
from sonant.evaluation.breakdown import Group
from sonant.evaluation.table import Evaluation
from sonant.metrics.intervals import BootstrapConfig, Interval
from sonant.recipes.catalogue import absolute
from sonant.recipes.decoding import Asked

# Each is a module with evaluate, figures and intervals.
EVALUATIONS = {
    "language": "sonant.recipes.language_evaluation",
    "ctc": "sonant.recipes.ctc_evaluation",
    "seq2seq": "sonant.recipes.seq2seq_evaluation",
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


def evaluation_groups(
    result: EvaluateResult, *data: str, by: Sequence[str], bootstrap: BootstrapConfig | None = None
) -> Mapping[str, Sequence[Group]]:
    """The groups that columns of the manifest, or labels, make of the utterances, where the task has some."""
    opened, module = _measured(result, "groups", "--by")
    places = [absolute(place) for place in data]
    found: Mapping[str, Sequence[Group]] = module.groups(
        opened, places, result.evaluation, by, bootstrap or BootstrapConfig()
    )
    return found


def _measured(result: EvaluateResult, what: str, option: str) -> tuple[Bundle, Any]:
    opened = open_bundle(result.bundle)
    module = importlib.import_module(EVALUATIONS[opened.description.task])
    if not hasattr(module, what):
        problem = f"an evaluation of '{opened.description.task}' has no {what}."
        raise UsageError(result.bundle, problem, f"Leave {option} out.")
    return opened, module


def evaluation_page(
    result: EvaluateResult, *data: str, by: Sequence[str] = (), bootstrap: BootstrapConfig | None = None
) -> str:
    """A page of what was measured, where the task has one; `by` are columns of the manifest to group by."""
    opened, module = _measured(result, "page", "--report")
    places = [absolute(place) for place in data]
    found: str = module.page(opened, places, result.evaluation, by, bootstrap or BootstrapConfig())
    return found


def evaluate(
    bundle: str,
    *data: str,
    split: str | None = None,
    bootstrap: BootstrapConfig | None = None,
    device: str = "cpu",
    settings: Sequence[str | Given] = (),
    is_greedy: bool = False,
    num_best: int = 1,
    tune: str | None = None,
    save_decoding: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> EvaluateResult:
    """Measures a bundle on data, or, without any, on what its training validated with.

    A recogniser decodes as its bundle says, or with other `settings` of a search (`beam.width=20`), greedily, or as is
    best on the split `tune`; `num_best` also counts the errors of the best of so many answers. `save_decoding` writes
    the decoding into the bundle, which decodes so from then on.
    """
    opened = open_bundle(bundle)
    task = opened.description.task
    if task not in EVALUATIONS:
        raise UsageError(
            bundle, f"a bundle of '{task}' cannot be evaluated.", f"Name one of: {', '.join(EVALUATIONS)}."
        )
    module = importlib.import_module(EVALUATIONS[task])
    asked = Asked(settings=settings, is_greedy=is_greedy, num_best=num_best, tune=tune, save=save_decoding)
    if asked.is_anything and not hasattr(module, "keep_decoding"):
        problem = f"a bundle of '{task}' is not decoded."
        raise UsageError(bundle, problem, "Leave the options of decoding out, or name a recogniser.")
    more = {"asked": asked} if asked.is_anything else {}
    found: Evaluation = module.evaluate(opened, [absolute(place) for place in data], split, device, say, **more)
    figures = module.figures(found)
    if save_decoding:
        module.keep_decoding(opened, found)
        say(f"{bundle} decodes so from now on: {found.facts.settings['decoded']}")
    return EvaluateResult(bundle, figures, module.intervals(found, bootstrap or BootstrapConfig()), found)
