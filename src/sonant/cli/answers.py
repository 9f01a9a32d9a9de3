"""Options of verbs that have an answer for each recording: which ones are meant, and where the answers go."""

from __future__ import annotations

import argparse
import sys

from sonant.base.errors import UsageError


def add_bundle_and_recordings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", metavar="BUNDLE", help="the folder 'bundle' of a run, local or remote")
    parser.add_argument("recordings", metavar="RECORDING", nargs="+", help="files, folders, 'patterns', URIs, corpora")


def add_answer_options(parser: argparse.ArgumentParser, formats: str) -> None:
    """`formats` are those of --format in words, the usual one first."""
    parser.add_argument("--out", metavar="DIR", help="write a file for each recording; without it, print")
    parser.add_argument("--format", metavar="KINDS", help=f"of --out: {formats}")
    parser.add_argument("--again", action="store_true", help="with --out: also what is done already")
    parser.add_argument("--split", metavar="NAME", help="of corpora; without it, all of them")
    parser.add_argument(
        "--channel", metavar="N", type=int, help="of recordings with several, from 0; their mean if not"
    )
    parser.add_argument("--device", metavar="NAME", default="cpu", help="cpu (the default), cuda, cuda:1, …")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each recording")


def check_answer_options(arguments: argparse.Namespace) -> None:
    """Refuses those that have no effect together."""
    if arguments.format and not arguments.out:
        raise UsageError("--format", "it is that of files, and none are written.", "Give --out, or --json to print.")
    if arguments.json and arguments.out:
        raise UsageError("--json", "it prints, and --out writes files.", "Write --format json, or leave --out out.")
    if arguments.again and not arguments.out:
        raise UsageError("--again", "it has no effect without --out.", "Leave it out.")


def channel_in_words(arguments: argparse.Namespace) -> str:
    return "the mean of all" if arguments.channel is None else str(arguments.channel)


def say(sentence: str) -> None:
    """Beside the answers, not among them."""
    print(f"sonant: {sentence}", file=sys.stderr)
