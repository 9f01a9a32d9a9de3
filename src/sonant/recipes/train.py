"""What `sonant train` and `sonant.train` do: a recipe becomes a run, or several that differ by their seed."""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sonant.base import storage
from sonant.base.errors import ConfigError
from sonant.base.overrides import Given
from sonant.checkpoints.hub import push_bundle
from sonant.recipes.catalogue import Recipe, open_recipe
from sonant.training.batch_size import largest_that_fits
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.parts import TrainResult
from sonant.training.run_folder import RunFolder
from sonant.training.scan import scan
from sonant.training.start import train as train_run

# Half-widths of 95 % intervals of a mean, in standard errors, by degrees of freedom (Student's t).
_T = (math.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True, kw_only=True)
class SeedsResult:
    """The same recipe with several seeds."""

    run: str
    runs: tuple[TrainResult, ...]
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # figure -> mean, low, high, min, max


def train(
    recipe: str,
    *data: str,
    run: str,
    settings: Sequence[str | Given] = (),
    resume: str | None = None,
    find_batch: bool = False,
    push_to_hub: str | None = None,
    is_silent: bool = False,
) -> TrainResult:
    """Trains a recipe on data into the folder or bucket `run`, or goes on there; `settings` are `key=value`."""
    opened = open_recipe(recipe, data, settings)
    if find_batch:
        opened = _sized(opened, recipe, data, settings, run, Console(is_silent=is_silent))
    result = train_run(
        run, opened.config, opened.build, resume=resume, is_silent=is_silent, scan_command=_scan_command(run)
    )
    if push_to_hub and result.is_finished:
        push_bundle(RunFolder(run).bundle, push_to_hub)
    return result


def train_seeds(
    recipe: str, *data: str, run: str, count: int, settings: Sequence[str | Given] = (), is_silent: bool = False
) -> SeedsResult:
    """Runs the recipe so often, each in a folder of its own below `run`; one that is finished is not run again."""
    if count < 2:
        raise ConfigError("--seeds", f"{count} was found, 2 or more say something of chance.", "Raise it.")
    results = []
    for seed in range(count):
        told = [*settings, f"trainer.seed={seed}"]
        result = train(recipe, *data, run=storage.join(run, f"seed-{seed}"), settings=told, is_silent=is_silent)
        results.append(result)
        if not result.is_finished:
            break
    made = SeedsResult(run=run, runs=tuple(results), figures=_over_seeds(results))
    values = {"seeds": len(results), "figures": made.figures, "runs": [vars(result) for result in results]}
    storage.write_text(storage.join(run, "seeds.json"), json.dumps(values, indent=2) + "\n")
    return made


def scan_only(recipe: str, run: str, settings: Sequence[str | Given]) -> None:
    """What the process does that tries the largest batches."""
    opened = open_recipe(recipe, (), settings)
    engine = Engine(opened.config.trainer, cpu=True)
    scan(opened.build(engine, RunFolder(run), Console(is_silent=True)), engine, opened.config.trainer)


def _scan_command(run: str) -> list[str]:
    config = RunFolder(run).path("config.yaml")
    return [sys.executable, "-m", "sonant.cli.main", "train", config, "--run", run, "--scan-only"]


def _sized(
    opened: Recipe, recipe: str, data: Sequence[str], settings: Sequence[str | Given], run: str, console: Console
) -> Recipe:
    """The recipe with the largest batches that memory holds."""
    size = largest_that_fits(opened.config, opened.batch_key, _scan_command(run), RunFolder(run), console)
    sized = open_recipe(recipe, data, [*settings, f"{opened.batch_key}={size}"])
    # What fits has been tried just now.
    guard = replace(sized.config.trainer.guard, scan=False)
    config = replace(sized.config, trainer=replace(sized.config.trainer, guard=guard))
    return replace(sized, config=config)


def _over_seeds(results: Sequence[TrainResult]) -> dict[str, dict[str, float]]:
    """Mean and 95 % interval of each figure: what another seed would give on average."""
    found: dict[str, dict[str, float]] = {}
    for name in results[0].metrics:
        values = [float(result.metrics[name]) for result in results if name in result.metrics]
        found[name] = {"mean": statistics.fmean(values), "min": min(values), "max": max(values)}
        found[name] |= {"median": statistics.median(values)}
        if len(values) > 1:
            half = _T[min(len(values) - 1, len(_T) - 1)] * statistics.stdev(values) / math.sqrt(len(values))
            found[name] |= {"low": found[name]["mean"] - half, "high": found[name]["mean"] + half}
    return found


def result_values(result: TrainResult) -> dict[str, Any]:
    """Plain values for programs."""
    return {**vars(result), "metrics": dict(result.metrics)}
