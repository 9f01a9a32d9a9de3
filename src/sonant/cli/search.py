"""Options that say how answers are searched for, the same for every verb that decodes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sonant.cli.parser import given

if TYPE_CHECKING:
    from sonant.base.overrides import Given
    from sonant.checkpoints.bundle import Bundle
    from sonant.decoding.decoder import DecodingConfig

_KEYS = {"--beam": "beam.width", "--ngram": "ngram", "--lexicon": "lexicon", "--rescorer": "rescorer"}


def add_search_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Without any of them a bundle decodes as it was told to: sonant evaluate --save-decoding."""
    group = parser.add_argument_group("decoding", "without these options as the bundle says, which begins as --greedy")
    group.add_argument("--greedy", action="store_true", help="the best symbol of each frame, whatever the bundle says")
    group.add_argument("--beam", metavar="N", type=int, help="search with so many prefixes (10)")
    group.add_argument("--ngram", metavar="FILE", help="n-grams of words that the search listens to: sonant ngram")
    group.add_argument("--lexicon", metavar="FILE", help="the only words that may be written, one a line")
    group.add_argument("--hot-word", metavar="WORD", action="append", default=[], help="expect it; may be repeated")
    group.add_argument("--rescorer", metavar="BUNDLE", help="a language model that chooses among the best answers")
    group.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="sets",
        help="guide.ngram_weight=0.7, guide.word_bonus=2, beam.window=9, rescoring.weight=0.4, num_rescored=50",
    )
    return group


def search_settings(arguments: argparse.Namespace) -> list[str | Given]:
    """What these options say."""
    from sonant.base.overrides import Given
    from sonant.recipes.decoding import hot

    hot_words = [Given("hot_words", hot(arguments.hot_word), "--hot-word")] if arguments.hot_word else []
    return [*given(arguments, _KEYS), *hot_words, *arguments.sets]


def decoding_asked_for(bundle: Bundle, arguments: argparse.Namespace) -> DecodingConfig:
    """The decoding that these options choose for a bundle."""
    from sonant.recipes.decoding import asked_decoding

    return asked_decoding(bundle, search_settings(arguments), is_greedy=arguments.greedy)
