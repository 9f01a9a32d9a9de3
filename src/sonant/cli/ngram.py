"""`sonant ngram`: texts become an n-gram model that decoding listens to."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from sonant.cli.main import VERBS
from sonant.cli.parser import Parser, given

if TYPE_CHECKING:
    from sonant.recipes.ngram import NgramResult

_EPILOG = """\
examples:
  sonant ngram texts.txt --out words.arpa.gz               modified Kneser-Ney of order 3, as every toolkit reads it
  sonant ngram my-corpus --out words.ngram --held-out my-corpus       its split of training; how well it fits the other
  sonant ngram texts.txt --out words.ngram --bundle run/bundle        normalised as the recogniser's texts were

A file ending in .ngram is mapped, not read: it opens at once. Each line of a text is a sentence.
"""
_KEYS = {"--order": "ngram.order", "--unit": "unit", "--bundle": "bundle"}


def parser() -> Parser:
    made = Parser("ngram", VERBS["ngram"], _EPILOG)
    made.add_argument("data", metavar="DATA", nargs="+", help="corpora, text files, tables, folders of either")
    made.add_argument("--out", metavar="FILE", required=True, help="ends in .arpa, .arpa.gz or .ngram")
    made.add_argument("--order", metavar="N", type=int, help="how many words belong together (3)")
    made.add_argument("--unit", choices=("word", "character", "token"), metavar="UNIT", help="word, character or token")
    made.add_argument("--bundle", metavar="BUNDLE", help="the recogniser whose words these are")
    made.add_argument(
        "--held-out", metavar="DATA", action="append", default=[], help="measure the model on these texts"
    )
    made.add_argument("--json", action="store_true", help="print plain values for programs")
    group = made.add_argument_group("configuration")
    group.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="sets", help="ngram.min_word_count=2"
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    from sonant.recipes.ngram import estimate

    settings = [*given(arguments, _KEYS), *arguments.sets]
    result = estimate(
        arguments.data,
        arguments.out,
        settings,
        held_out=arguments.held_out,
        say=lambda sentence: print(sentence, file=sys.stderr),
    )
    print(json.dumps(result.as_dict(), indent=2) if arguments.json else in_words(result))
    return 0


def in_words(result: NgramResult) -> str:
    """How large it is, and how well it fits."""
    orders = ", ".join(f"{count:,} of {order}" for order, count in enumerate(result.num_ngrams, start=1))
    told = f"{result.location}: {result.num_sentences:,} sentences; n-grams: {orders}"
    if result.perplexity is None or result.unknown_share is None:
        return told
    unknown = 100 * result.unknown_share
    return f"{told}\nheld out: perplexity {result.perplexity:.2f} by word, {unknown:.2f} % of the words unknown"
