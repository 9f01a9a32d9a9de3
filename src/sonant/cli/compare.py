"""`sonant compare`: runs side by side, and whether one is better than another."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from sonant.cli.main import VERBS
from sonant.cli.parser import Parser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sonant.evaluation.compare import Standing

_EPILOG = """\
examples:
  sonant compare runs/first runs/second                    each figure, and the difference to the first run
  sonant compare runs/* --html compared.html               curves laid over each other, settings that differ
  sonant compare a.parquet b.parquet                       tables of `sonant evaluate --table`

Differences are paired: both runs are resampled with the same speakers or documents. Tables of other utterances are
refused.
"""


def parser() -> Parser:
    made = Parser("compare", VERBS["compare"], _EPILOG)
    made.add_argument("runs", metavar="RUN", nargs="+", help="folders of runs, or tables of evaluations")
    made.add_argument("--html", metavar="FILE", help="write one self-contained page")
    made.add_argument("--resamples", metavar="N", type=int, default=2000, help="of the bootstrap (2000)")
    made.add_argument("--json", action="store_true", help="print plain values for programs")
    return made


def run(arguments: argparse.Namespace) -> int:
    from sonant.base import storage
    from sonant.base.errors import UsageError
    from sonant.evaluation.compare import comparison_page, differing_settings, measured, read_run, standings
    from sonant.metrics.intervals import BootstrapConfig
    from sonant.reports.terminal import text_table

    if len(arguments.runs) < 2:
        raise UsageError("sonant compare", "one run was given, two or more are compared.", "Name another.")
    runs = [read_run(place) for place in arguments.runs]
    made = standings(runs, BootstrapConfig(resamples=arguments.resamples))
    if arguments.html:
        storage.write_text(arguments.html, comparison_page(made))
        print(f"The page is {arguments.html}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(_values(made), indent=2))
        return 0
    parts = [text_table(*measured(made))]
    if rows := differing_settings(runs):
        parts.append(text_table(["setting", *(run.name for run in runs)], rows))
    print("\n\n".join(parts))
    return 0


def _values(made: Sequence[Standing]) -> list[dict[str, Any]]:
    return [
        {
            "run": standing.contestant.place,
            "best": standing.contestant.best,
            "intervals": {name: vars(found) for name, found in standing.intervals.items()},
            "against_first": {
                name: {**vars(found.difference), "p": found.chance} for name, found in standing.against_first.items()
            },
        }
        for standing in made
    ]
