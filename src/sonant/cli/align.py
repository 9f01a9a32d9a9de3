"""`sonant align`: when each word of a known text is said, and how well the text fits."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from sonant.cli.main import VERBS
from sonant.cli.parser import Parser, words

if TYPE_CHECKING:
    from sonant.inference.transcriber import Transcriber
    from sonant.inference.transcripts import Transcript
    from sonant.recipes.align import Aligned, Paired

_EPILOG = """\
examples:
  sonant align run/bundle talk.flac --text talk.txt                 print the words with their times
  sonant align run/bundle talk.flac --text "Good morning, all."     the text itself
  sonant align run/bundle my-corpus --split dev --out aligned       a TextGrid for each utterance, and scores.csv
  sonant align run/bundle talks/ --out aligned --format TextGrid,srt   the texts lie beside: talks/a.flac, talks/a.txt
  sonant align run/bundle 'talks/*.mp3' --text texts/ --json        or in a folder of their own: texts/a.txt

scores.csv says how well each text fits, the worst first: 0 is a text that the recogniser would have written itself.
With --out, recordings that cannot be aligned are lines of DIR/failures.csv, and the others go on.
"""
_WORST = 3


def parser() -> Parser:
    made = Parser("align", VERBS["align"], _EPILOG)
    made.add_argument("bundle", metavar="BUNDLE", help="the folder 'bundle' of a run, local or remote")
    made.add_argument("recordings", metavar="RECORDING", nargs="+", help="files, folders, 'patterns', URIs, corpora")
    made.add_argument(
        "--text", metavar="TEXT", help="a text, its file, or a folder of files; without it, they lie beside"
    )
    made.add_argument("--out", metavar="DIR", help="write a file for each recording; without it, print")
    made.add_argument(
        "--format", metavar="KINDS", help="of --out: TextGrid (the default), json, ctm, srt, vtt, txt; several: ctm,srt"
    )
    made.add_argument("--again", action="store_true", help="with --out: also what is done already")
    made.add_argument("--split", metavar="NAME", help="of corpora; without it, all of them")
    made.add_argument("--channel", metavar="N", type=int, help="of recordings with several, from 0; their mean if not")
    made.add_argument("--device", metavar="NAME", default="cpu", help="cpu (the default), cuda, cuda:1, …")
    made.add_argument("--json", action="store_true", help="print a line of JSON for each recording")
    return made


def run(arguments: argparse.Namespace) -> int:
    from sonant.base.errors import UsageError
    from sonant.decoding.decoder import GreedyConfig
    from sonant.recipes.align import align_into
    from sonant.recipes.opening import Opening
    from sonant.recipes.texts_beside import with_texts
    from sonant.recipes.transcribe import check_formats, on_channel, recordings

    if arguments.format and not arguments.out:
        raise UsageError("--format", "it is that of files, and none are written.", "Give --out, or --json to print.")
    if arguments.json and arguments.out:
        raise UsageError("--json", "it prints, and --out writes files.", "Write --format json, or leave --out out.")
    if arguments.again and not arguments.out:
        raise UsageError("--again", "it has no effect without --out.", "Leave it out.")
    formats = check_formats(words(arguments.format or "TextGrid"))
    opening = Opening(bundle=arguments.bundle, decoding=GreedyConfig(), device=arguments.device)
    transcriber = opening.open(_say)
    found = on_channel(recordings(arguments.recordings, arguments.split), arguments.channel)
    pairs = with_texts(found, arguments.text)
    if not arguments.out:
        return _print_all(transcriber, pairs, arguments)
    made_by = opening.made_by() | {"decoding": "of given texts", "channel": _channel(arguments.channel)}
    done = align_into(transcriber, pairs, arguments.out, formats, made_by=made_by, again=arguments.again, say=_say)
    print(_told(done, arguments.out))
    return 3 if done.failures else 0


def _print_all(transcriber: Transcriber, pairs: Paired, arguments: argparse.Namespace) -> int:
    from sonant.inference.transcriber import Failure
    from sonant.recipes.align import Unwritten, results

    unwritten, num_failed = Unwritten(transcriber), 0
    for _, result in results(transcriber, pairs, unwritten):
        if isinstance(result, Failure):
            num_failed += 1
            _say(str(result.error))
        elif arguments.json:
            print(json.dumps(result.as_dict(), ensure_ascii=False), flush=True)
        else:
            print(_in_words(result), flush=True)
    if unwritten.counts:
        _say(str(unwritten))
    return 3 if num_failed else 0


def _in_words(found: Transcript) -> str:
    """A line a word: start and end in seconds, confidence, the word."""
    head = f"# {found.name}: {found.seconds:.2f} s, score {(found.score or 0):.3f}, confidence {found.confidence:.3f}"
    lines = [f"{word.start:.2f}\t{word.end:.2f}\t{word.confidence:.3f}\t{word.text}" for word in found.words]
    return "\n".join([head + (f", skipped: {' '.join(found.skipped)}" if found.skipped else ""), *lines])


def _channel(number: int | None) -> str:
    return "the mean of all" if number is None else str(number)


def _told(done: Aligned, folder: str) -> str:
    told = f"{folder}: {done.num_written:,} recordings, {done.seconds / 3600:.2f} h"
    told += f"; {done.num_skipped:,} were done already" if done.num_skipped else ""
    told += f"; {len(done.failures):,} failed, see {folder}/failures.csv" if done.failures else ""
    if len(done.rows) <= _WORST:
        return told
    worst = [
        f"  {row[0]}{', line ' * bool(row[1])}{row[1]}  score {row[2]}, least sure of '{row[6]}' at {row[7]} s"
        for row in done.rows[:_WORST]
    ]
    return "\n".join([f"{told}\nThe texts that fit worst, the others are in {folder}/scores.csv:", *worst])


def _say(sentence: str) -> None:
    print(f"sonant: {sentence}", file=sys.stderr)
