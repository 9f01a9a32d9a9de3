"""Runs side by side: their figures with intervals, whether one is better than another, and their curves overlaid."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sonant.base import storage
from sonant.base.document import flat, read_document
from sonant.base.errors import UsageError
from sonant.checkpoints.metrics_log import read_log
from sonant.evaluation.table import Evaluation, read_evaluation
from sonant.metrics.comparison import Comparison, compare
from sonant.metrics.intervals import BootstrapConfig, Interval
from sonant.reports.page import Page, figures, section, side_by_side, table, text, titled
from sonant.reports.plots import curves

TABLE = "utterances.parquet"  # of the best weights, in the folder of a run
_MOST_SETTINGS = 40


@dataclass(frozen=True)
class Contestant:
    """What is known of one run."""

    name: str
    place: str
    lines: list[dict[str, Any]]
    results: dict[str, Any]
    settings: dict[str, Any]
    evaluation: Evaluation | None

    @property
    def best(self) -> dict[str, float]:
        """The figures of its best validation."""
        found = {name.removeprefix("eval_"): value for name, value in self.results.items() if name.startswith("eval_")}
        return {name: value for name, value in found.items() if isinstance(value, int | float)}


@dataclass(frozen=True)
class Standing:
    """One run in a comparison."""

    contestant: Contestant
    intervals: dict[str, Interval]
    against_first: dict[str, Comparison]  # how much higher it is than the first run, by measure


def read_run(place: str) -> Contestant:
    """A run's folder, or the table of an evaluation by itself."""
    name = os.path.basename(place.rstrip("/"))
    if place.endswith(".parquet"):
        found = read_evaluation(place)
        return Contestant(name, place, [], {}, _settings_of(found), found)
    log = storage.join(place, "metrics.jsonl")
    if not storage.exists(log):
        raise UsageError(place, "this is no run: metrics.jsonl is missing.", "Name folders given to --run.")
    results, config = storage.join(place, "all_results.json"), storage.join(place, "config.yaml")
    found = json.loads(storage.read_bytes(results)) if storage.exists(results) else {}
    settings = read_document(config).values if storage.exists(config) else {}
    rows = storage.join(place, TABLE)
    evaluation = read_evaluation(rows) if storage.exists(rows) else None
    return Contestant(name, place, read_log(log), found, flat(settings), evaluation)


def standings(runs: Sequence[Contestant], config: BootstrapConfig | None = None) -> list[Standing]:
    """Each run with its intervals, and against the first where both have tables of the same utterances."""
    _check_same_data(runs)
    first = runs[0].evaluation
    made = []
    for run in runs:
        intervals, against = {}, {}
        if run.evaluation:
            intervals = {measure: run.evaluation.interval(measure, config) for measure in run.evaluation.measures}
        if run.evaluation and first and run is not runs[0]:
            shared = [measure for measure in run.evaluation.measures if measure in first.measures]
            against = {name: compare(run.evaluation.table(name), first.table(name), config) for name in shared}
        made.append(Standing(run, intervals, against))
    return made


def differing_settings(runs: Sequence[Contestant]) -> list[list[str]]:
    """A row for each setting that is not the same in all runs."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    rows = [[name, *(str(run.settings.get(name, "")) for run in runs)] for name in names]
    return [row for row in rows if len(set(row[1:])) > 1][:_MOST_SETTINGS]


def measured(made: Sequence[Standing]) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of the table that matters: a run and a measure in each row."""
    rows = []
    for standing in made:
        values = dict(standing.intervals) or {
            name: Interval(v, *_NOWHERE) for name, v in standing.contestant.best.items()
        }
        for name, found in values.items():
            against = standing.against_first.get(name)
            better = [interval_text(against.difference), round(against.chance, 4)] if against else ["", ""]
            rows.append([standing.contestant.name, name, interval_text(found), *better])
    return ["run", "figure", "value [95 %]", f"less {made[0].contestant.name} [95 %]", "p"], rows


def comparison_page(made: Sequence[Standing]) -> str:
    """One self-contained page."""
    runs = [standing.contestant for standing in made]
    page = Page("Runs compared", ", ".join(run.name for run in runs))
    page.add(section("At a glance", figures({run.name: _headline(run) for run in runs})))
    note = "Intervals: bootstrap over whole speakers or documents; differences are paired, p is two-sided."
    page.add(section("Figures", table(*measured(made), is_sortable=False), note=note))
    for kind, title in (("train", "Training"), ("validation", "Validation")):
        plots = [titled(name, curves(found, unit="step")) for name, found in _overlaid(runs, kind).items()]
        page.add(section(title, side_by_side(*plots)) if plots else "")
    rows = differing_settings(runs)
    columns = ["setting", *(run.name for run in runs)]
    page.add(section("Settings that differ", table(columns, rows) if rows else text("None.")))
    return page.html()


def interval_text(found: Interval) -> str:
    """`1.52 [1.48, 1.57]`, without brackets where nothing is known of others."""
    value = f"{found.value:.4g}"
    return value if found.low != found.low else f"{value} [{found.low:.4g}, {found.high:.4g}]"


_NOWHERE = (float("nan"), float("nan"))
_NOT_SETTINGS = {"tried", "real_time_factor"}
_NO_FIGURES = {"kind", "step", "clock", "ids", "says", "figure", "action"}


def _check_same_data(runs: Sequence[Contestant]) -> None:
    tables = [run for run in runs if run.evaluation]
    for run in tables[1:]:
        assert run.evaluation
        assert tables[0].evaluation
        if {row.id for row in run.evaluation.rows} != {row.id for row in tables[0].evaluation.rows}:
            problem = f"it was tested on other utterances than {tables[0].place}: they cannot be compared."
            raise UsageError(run.place, problem, "Evaluate both on the same split: sonant evaluate BUNDLE CORPUS.")


def _settings_of(evaluation: Evaluation) -> dict[str, Any]:
    """Of a table by itself: what it was made with, and how."""
    facts = evaluation.facts
    told = {name: value for name, value in facts.settings.items() if name not in _NOT_SETTINGS}
    return {"bundle": facts.bundle, **flat(told)}


def _headline(run: Contestant) -> str:
    if run.evaluation and run.evaluation.measures:
        return f"{run.evaluation.figure(run.evaluation.measures[0]):.4g}"
    return f"{next(iter(run.best.values())):.4g}" if run.best else "unfinished"


def _overlaid(runs: Sequence[Contestant], kind: str) -> dict[str, dict[str, tuple[list[float], list[float]]]]:
    """Figure -> run -> steps and values, of figures that at least one run has."""
    found: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for run in runs:
        for line in run.lines:
            for name, value in line.items() if line["kind"] == kind else ():
                if name not in _NO_FIGURES and isinstance(value, int | float):
                    steps, values = found.setdefault(name, {}).setdefault(run.name, ([], []))
                    steps.append(line["step"])
                    values.append(value)
    return found
