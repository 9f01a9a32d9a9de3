"""The page of a run: its curves, what its guards saw, its epochs and its settings. Written anew while it goes on."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sonant.base import storage
from sonant.checkpoints.metrics_log import read_log
from sonant.reports.page import Block, Page, figures, section, side_by_side, table, text, titled
from sonant.reports.plots import curves
from sonant.training.console import duration, shown
from sonant.training.run_folder import RunFolder

Line = Mapping[str, Any]
Series = dict[str, tuple[list[float], list[float]]]

_LEADING = ("rate", "gradient_norm")
_NO_CURVES = {"kind", "step", "clock", "loss", "skipped_steps", *_LEADING}
_SHOWN = 15  # rows of a table of what went wrong


def write_page(run: RunFolder, total_steps: int | None, sections: Sequence[Block] = ()) -> None:
    """Writes `report.html` from what the run has logged so far; `sections` are what the recipe adds."""
    lines = read_log(run.metrics) if os.path.exists(run.metrics) else []
    results = _json(run.path("all_results.json"))
    page = Page(f"Run {os.path.basename(run.place.rstrip('/'))}", _progress(lines, total_steps, results))
    page.add(_glance(lines, results), _losses(lines), *sections, _health(lines), _trouble(lines), _epochs(lines))
    page.add(_settings(run))
    storage.write_text(run.path("report.html"), page.html())


def series(lines: Sequence[Line], kind: str, name: str) -> tuple[list[float], list[float]]:
    """The steps and values of one figure."""
    found = [(line["step"], line[name]) for line in lines if line["kind"] == kind and line.get(name) is not None]
    return [step for step, _ in found], [value for _, value in found]


def _progress(lines: Sequence[Line], total_steps: int | None, results: Line) -> str:
    step = max((line["step"] for line in lines), default=0)
    told = f"step {step:,}" + (f" of {total_steps:,}" if total_steps else "")
    left = next((line["clock"].get("seconds_left") for line in reversed(lines) if line["kind"] == "train"), None)
    if results and results.get("train_steps") == step:
        return f"{told}; {results['train_reason']}"
    return f"{told}, {duration(left)} left" if left else told


def _glance(lines: Sequence[Line], results: Line) -> Block:
    validations = [line for line in lines if line["kind"] in ("validation", "average")]
    last = next((line for line in reversed(lines) if line["kind"] == "train"), {})
    cells = {"training loss": shown(last["loss"])} if last.get("loss") is not None else {}
    if validations and validations[-1].get("loss") is not None:
        cells["validation loss"] = shown(validations[-1]["loss"])
    cells |= {
        f"best {name.removeprefix('eval_')}": shown(results[name]) for name in results if _is_figure(name, results)
    }
    seconds = last.get("clock", {}).get("seconds")
    cells |= {"since this start": duration(seconds)} if seconds else {}
    return section("At a glance", figures(cells)) if cells else ""


def _losses(lines: Sequence[Line]) -> Block:
    lost = {"training": series(lines, "train", "loss"), "validation": series(lines, "validation", "loss")}
    lost = {name: found for name, found in lost.items() if found[0]}
    if not lost:
        return ""
    others = {name: {name: found} for name, found in _named(lines, "validation") if name != "loss"}
    values = [value for _, found in lost.values() for value in found]
    is_log = min(values) > 0 and max(values) > 20 * min(values)
    return section("Loss", curves(lost, unit="step", is_log=is_log), side_by_side(*_plots(others)) if others else "")


def _health(lines: Sequence[Line]) -> Block:
    named = dict(_named(lines, "train"))
    plots = {name: {name: named[name]} for name in (*_LEADING, *named) if name in named}
    if not plots:
        return ""
    note = "A figure that leaves its bounds for long is told below and on the terminal."
    return section("Health", side_by_side(*_plots(plots)), note=note)


def _named(lines: Sequence[Line], kind: str) -> Iterator[tuple[str, tuple[list[float], list[float]]]]:
    """Every figure of a kind of line, but the loss."""
    names = dict.fromkeys(name for line in lines if line["kind"] == kind for name in line)
    for name in names:
        found = series(lines, kind, name) if name not in _NO_CURVES - set(_LEADING) else ([], [])
        if found[0]:
            yield name, found


def _plots(plots: Mapping[str, Series]) -> list[Block]:
    return [titled(name.replace("_", " "), curves(found, unit="step")) for name, found in plots.items()]


def _trouble(lines: Sequence[Line]) -> Block:
    rows = [
        [line["step"], line["kind"], _told(line)] for line in lines if line["kind"] in ("alarm", "skipped", "rollback")
    ]
    if not rows:
        return section("Guards", text("Nothing went wrong."))
    left = len(rows) - _SHOWN
    more = text(f"and {left:,} before these, see metrics.jsonl") if left > 0 else ""
    counts = Counter(id for line in lines if line["kind"] == "skipped" for id in line["ids"])
    often = ", ".join(f"{id} ({count} times)" for id, count in counts.most_common(5) if count > 2)
    more += text(f"Most often in steps that were skipped: {often}.") if often else ""
    return section("Guards", table(["step", "what", "said"], rows[-_SHOWN:], is_sortable=False), more)


def _told(line: Line) -> str:
    if line["kind"] == "alarm":
        return f"{line['figure']}: {line['says']} {line['action']}"
    if line["kind"] == "rollback":
        return f"back to this step at {line['rate_scale']:g} of the rate, because {line['because']}"
    return "gradients were not finite: " + ", ".join(line["ids"][:12])


def _epochs(lines: Sequence[Line]) -> Block:
    rows = [_epoch(line) for line in lines if line["kind"] == "epoch"]
    columns = [
        "epoch",
        "step",
        "utterances",
        "left out",
        "hours",
        "tokens",
        "padding %",
        "waited for data %",
        "× real time",
    ]
    return section("Epochs", table(columns, rows[-_SHOWN:])) if rows else ""


def _epoch(line: Line) -> list[Any]:
    real, padded = line["seconds"] or line["tokens"], line["padded_seconds"] or line["padded_tokens"]
    padding = round(100 * (1 - real / padded), 2) if padded else 0.0
    waited, speed = line["clock"].get("wait_share", 0.0), line["clock"].get("loading_speed") or 0.0
    hours = round(line["seconds"] / 3600, 3)
    counts = [line["epoch"], line["step"], line["num_utterances"], line["num_skipped"], hours, line["tokens"]]
    return [*counts, padding, round(100 * waited, 2), round(speed)]


def _settings(run: RunFolder) -> Block:
    path = run.path("config.yaml")
    if not os.path.exists(path):
        return ""
    found = storage.read_bytes(path).decode("utf-8")
    again = f"sonant train config.yaml --run {run.place}"
    rows = [line.split(":", 1) for line in found.splitlines() if ":" in line]
    cells = [
        [("\u2003" * ((len(name) - len(name.lstrip())) // 2)) + name.strip(), value.strip()] for name, value in rows
    ]
    return section(
        "Settings", table(["key", "value"], cells, is_sortable=False), note=f"All of them run again with: {again}"
    )


def _json(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    found: dict[str, Any] = json.loads(storage.read_bytes(path))
    return found


def _is_figure(name: str, results: Line) -> bool:
    return name.startswith("eval_") and name != "eval_step" and isinstance(results[name], int | float)
