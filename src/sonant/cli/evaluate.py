"""`sonant evaluate`: figures of a bundle, each with its interval, and a table with a row an utterance."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from sonant.cli.main import VERBS
from sonant.cli.parser import Parser
from sonant.cli.search import add_search_options, search_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sonant.evaluation.breakdown import Group
    from sonant.evaluation.table import Facts
    from sonant.recipes.evaluate import EvaluateResult

_EPILOG = """\
examples:
  sonant evaluate runs/plays/bundle                        on what its training kept back: the same figures again
  sonant evaluate runs/plays/bundle other.txt              on other data
  sonant evaluate runs/mine/bundle my-corpus --split test --table test.parquet
  sonant evaluate runs/mine/bundle my-corpus --split test --report test.html --by accent --by speaker

A recogniser decodes as its bundle says, or otherwise:
  sonant evaluate runs/mine/bundle my-corpus --split test --beam 20 --ngram words.ngram
  sonant evaluate runs/mine/bundle my-corpus --tune dev --split test --ngram words.ngram --rescorer runs/lm/bundle \\
      --save-decoding                                      weights chosen on dev; the bundle decodes so from then on
  sonant evaluate runs/mine/bundle my-corpus --split test --greedy --table greedy.parquet    for `sonant compare`
"""


_COLUMNS = ["figure", "value", "95 % low", "high"]


def parser() -> Parser:
    made = Parser("evaluate", VERBS["evaluate"], _EPILOG)
    made.add_argument("bundle", metavar="BUNDLE", help="the folder 'bundle' of a run, local or remote")
    made.add_argument("data", metavar="DATA", nargs="*", help="corpora or texts; none: those of its training")
    made.add_argument("--split", metavar="NAME", help="of corpora (dev)")
    made.add_argument("--table", metavar="FILE", help="write a row an utterance, for `sonant compare`")
    made.add_argument("--report", metavar="FILE", help="write a page: worst utterances, words confused")
    made.add_argument(
        "--by", metavar="COLUMN", action="append", default=[], help="figures by column or label; may be repeated"
    )
    made.add_argument("--resamples", metavar="N", type=int, default=2000, help="of the bootstrap (2000)")
    made.add_argument("--device", metavar="NAME", default="cpu", help="cpu (the default) or cuda")
    made.add_argument("--json", action="store_true", help="print plain values for programs")
    group = add_search_options(made)
    group.add_argument("--num-best", metavar="N", type=int, default=1, help="tell the errors of the best of N answers")
    group.add_argument("--tune", metavar="SPLIT", help="choose the weights of the search on this split")
    group.add_argument("--save-decoding", action="store_true", help="write it into the bundle, which decodes so then")
    return made


def run(arguments: argparse.Namespace) -> int:
    from sonant.base import storage
    from sonant.evaluation.table import write_evaluation
    from sonant.metrics.intervals import BootstrapConfig
    from sonant.recipes.evaluate import evaluate, evaluation_groups, evaluation_page

    def say(sentence: str) -> None:
        print(sentence, file=sys.stderr)

    bootstrap = BootstrapConfig(resamples=arguments.resamples)
    result = evaluate(
        arguments.bundle,
        *arguments.data,
        split=arguments.split,
        bootstrap=bootstrap,
        device=arguments.device,
        settings=search_settings(arguments),
        is_greedy=arguments.greedy,
        num_best=arguments.num_best,
        tune=arguments.tune,
        save_decoding=arguments.save_decoding,
        say=say,
    )
    groups: Mapping[str, Sequence[Group]] = {}
    if arguments.by:
        groups = evaluation_groups(result, *arguments.data, by=arguments.by, bootstrap=bootstrap)
    if arguments.table:
        write_evaluation(arguments.table, result.evaluation)
        say(f"The table is {arguments.table}")
    if arguments.report:
        page = evaluation_page(result, *arguments.data, by=arguments.by, bootstrap=bootstrap)
        storage.write_text(arguments.report, page)
        say(f"The page is {arguments.report}")
    if arguments.json:
        by = {column: [group.as_dict() for group in found] for column, found in groups.items()}
        print(json.dumps(result.as_dict() | ({"by": by} if by else {}), indent=2, ensure_ascii=False))
    else:
        print("\n\n".join([in_words(result), *map(_grouped, groups, groups.values())]))
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
    return "\n".join([told, *_decoding(result.evaluation.facts), text_table(_COLUMNS, rows)])


def _decoding(facts: Facts) -> Iterator[str]:
    """How a recogniser decoded, what else was tried, and how fast it all was."""
    from sonant.evaluation.breakdown import tried_decodings
    from sonant.evaluation.speed import speed_in_words
    from sonant.reports.terminal import text_table

    settings: Any = facts.settings
    if "tried" in settings:
        yield f"tried on '{settings['tuned_on']}':"
        yield text_table(*tried_decodings(settings["tried"]))
        if settings["tuned_on"] == facts.split:
            yield "The weights were chosen on these very utterances: expect more on others. Try another --split."
    if "decoded" in settings:
        yield f"decoded by {settings['decoded']}"
    if "real_time_factor" in settings:
        yield f"real-time factor {speed_in_words(settings['real_time_factor'])}"


def _grouped(column: str, groups: Sequence[Group]) -> str:
    from sonant.evaluation.breakdown import side_by_side
    from sonant.reports.terminal import text_table

    return f"by {column}\n{text_table(*side_by_side(groups))}"
