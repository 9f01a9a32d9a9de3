"""`sonant evaluate`: figures of a bundle, each with its interval, and a table with a row an utterance."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from sonant.cli.main import VERBS
from sonant.cli.parser import Parser

if TYPE_CHECKING:
    from sonant.recipes.evaluate import EvaluateResult

_EPILOG = """\
examples:
  sonant evaluate runs/plays/bundle                        on what its training kept back: the same figures again
  sonant evaluate runs/plays/bundle other.txt              on other data
  sonant evaluate runs/mine/bundle my-corpus --split test --table test.parquet
  sonant evaluate runs/mine/bundle my-corpus --split test --report test.html --by accent --by speaker
"""


def parser() -> Parser:
    made = Parser("evaluate", VERBS["evaluate"], _EPILOG)
    made.add_argument("bundle", metavar="BUNDLE", help="the folder 'bundle' of a run, local or remote")
    made.add_argument("data", metavar="DATA", nargs="*", help="corpora or texts; none: those of its training")
    made.add_argument("--split", metavar="NAME", help="of corpora (dev)")
    made.add_argument("--table", metavar="FILE", help="write a row an utterance, for `sonant compare`")
    made.add_argument("--report", metavar="FILE", help="write a page: worst utterances, words confused")
    made.add_argument(
        "--by", metavar="COLUMN", action="append", default=[], help="group --report by it; may be repeated"
    )
    made.add_argument("--resamples", metavar="N", type=int, default=2000, help="of the bootstrap (2000)")
    made.add_argument("--device", metavar="NAME", default="cpu", help="cpu (the default) or cuda")
    made.add_argument("--json", action="store_true", help="print plain values for programs")
    return made


def run(arguments: argparse.Namespace) -> int:
    from sonant.base import storage
    from sonant.base.errors import UsageError
    from sonant.evaluation.table import write_evaluation
    from sonant.metrics.intervals import BootstrapConfig
    from sonant.recipes.evaluate import evaluate, evaluation_page

    if arguments.by and not arguments.report:
        raise UsageError("--by", "it groups the page, and none is written.", "Give --report FILE.")

    def say(sentence: str) -> None:
        print(sentence, file=sys.stderr)

    bootstrap = BootstrapConfig(resamples=arguments.resamples)
    where = {"split": arguments.split, "device": arguments.device}
    result = evaluate(arguments.bundle, *arguments.data, bootstrap=bootstrap, say=say, **where)
    if arguments.table:
        write_evaluation(arguments.table, result.evaluation)
        say(f"The table is {arguments.table}")
    if arguments.report:
        page = evaluation_page(result, *arguments.data, by=arguments.by, bootstrap=bootstrap)
        storage.write_text(arguments.report, page)
        say(f"The page is {arguments.report}")
    print(json.dumps(result.as_dict(), indent=2) if arguments.json else in_words(result))
    return 0


def in_words(result: EvaluateResult) -> str:
    """A line a figure; intervals where there is more than one document or speaker."""
    from sonant.reports.terminal import text_table

    rows = []
    for name, value in result.figures.items():
        found = result.intervals.get(name)
        bounds = [found.low, found.high] if found and found.low == found.low else [None, None]
        rows.append([name, *("" if number is None else f"{number:.6g}" for number in (value, *bounds))])
    count = len(result.evaluation.rows)
    told = f"{result.bundle}: {count:,} rows" + ("" if count > 1 else "; one alone has no interval")
    return f"{told}\n{text_table(['figure', 'value', '95 % low', 'high'], rows)}"
