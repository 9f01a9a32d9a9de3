"""`sonant train`: a recipe and data become a trained model; the same command goes on where it was stopped."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING

from sonant.cli.main import VERBS
from sonant.cli.parser import Parser, add_config_options

if TYPE_CHECKING:
    from sonant.recipes.train import SeedsResult
    from sonant.training.parts import TrainResult

_EPILOG = """\
examples:
  sonant train shakespeare input.txt --run runs/plays      settings that come with Sonant
  sonant train language my-corpus --run runs/mine --set trainer.limits.max_steps=2000
  sonant train ctc my-corpus --run runs/heard --set model.kind=encoder --set model.folder=wav2vec2-base
  sonant train mine.yaml --run runs/mine                   your own settings: task, and what differs from its defaults
  sonant train runs/mine/config.yaml --run runs/again      what a run was trained with
  torchrun --nproc-per-node 2 -m sonant.cli.main -- train language my-corpus --run runs/mine

Run the same command again and the run goes on from its newest state, to the bit. Ctrl-C ends the step, saves and stops.
While it runs, DIR/report.html shows how it goes; afterwards DIR/bundle is the model.
"""


def parser() -> Parser:
    made = Parser("train", VERBS["train"], _EPILOG)
    recipe = "a task (ctc, pretrain, language), settings by name, or a YAML file"
    made.add_argument("recipe", metavar="RECIPE", help=recipe)
    made.add_argument(
        "data", metavar="DATA", nargs="*", help="what to learn from: corpora, or texts for a language model"
    )
    made.add_argument("--run", metavar="DIR", required=True, help="the folder or bucket of the run, new or begun")
    made.add_argument(
        "--resume", metavar="STATE", help="go on from this state instead of the newest: DIR/states/step-…"
    )
    made.add_argument("--seeds", metavar="N", type=int, help="run N times below DIR; mean and interval of the figures")
    made.add_argument("--find-batch", action="store_true", help="take the largest batches that memory holds")
    made.add_argument("--push-to-hub", metavar="NAME", help="upload the bundle at the end: owner/name")
    made.add_argument("--quiet", action="store_true", help="say nothing but errors")
    made.add_argument("--json", action="store_true", help="print the result as plain values for programs")
    made.add_argument("--scan-only", action="store_true", help=argparse.SUPPRESS)
    add_config_options(made)
    return made


def run(arguments: argparse.Namespace) -> int:
    # Torch warns on each rank of what is done here on purpose.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from sonant.base.errors import UsageError
    from sonant.recipes.train import result_values, scan_only, train, train_seeds

    if arguments.config:
        raise UsageError("--config", "the recipe itself is the file here.", "Write: sonant train FILE --run DIR")
    if arguments.scan_only:
        scan_only(arguments.recipe, arguments.run, arguments.sets)
        return 0
    common = {"run": arguments.run, "settings": arguments.sets, "is_silent": arguments.quiet}
    if arguments.seeds is not None:
        for option in ("resume", "push_to_hub", "find_batch"):
            if getattr(arguments, option):
                told = f"--{option.replace('_', '-')}"
                raise UsageError(told, "it means one run, --seeds means several.", "Leave one of them out.")
        seeds = train_seeds(arguments.recipe, *arguments.data, count=arguments.seeds, **common)
        print(json.dumps(seeds.figures, indent=2) if arguments.json else _seeds_in_words(seeds))
        return 0
    result = train(
        arguments.recipe,
        *arguments.data,
        resume=arguments.resume,
        find_batch=arguments.find_batch,
        push_to_hub=arguments.push_to_hub,
        **common,
    )
    if int(os.environ.get("RANK", "0")) == 0:
        print(json.dumps(result_values(result), indent=2) if arguments.json else in_words(result))
    return 0


def in_words(result: TrainResult) -> str:
    """What was reached, and the next command."""
    if not result.is_finished:
        return f"{result.run}: stopped at step {result.step:,}. The same command goes on."
    figures = ", ".join(f"{name} {value:.5g}" for name, value in result.metrics.items())
    told = f"{result.run}/bundle: step {result.best_step or result.step:,}" + (f", {figures}" if figures else "")
    return f"{told}\nNext: sonant evaluate {result.run}/bundle"


def _seeds_in_words(seeds: SeedsResult) -> str:
    from sonant.reports.terminal import text_table

    columns = ["figure", "mean", "95 % low", "high", "median", "min", "max"]
    names = ("mean", "low", "high", "median", "min", "max")
    rows = [
        [figure, *(f"{found[name]:.5g}" if name in found else "" for name in names)]
        for figure, found in seeds.figures.items()
    ]
    return f"{seeds.run}: {len(seeds.runs)} seeds\n{text_table(columns, rows)}"
