"""`sonant align`: when each word of a known text is said, and how well the text fits."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from sonant.cli.answers import (
    add_answer_options,
    add_bundle_and_recordings,
    channel_in_words,
    check_answer_options,
    say,
)
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
    add_bundle_and_recordings(made)
    made.add_argument(
        "--text", metavar="TEXT", help="a text, its file, or a folder of files; without it, they lie beside"
    )
    add_answer_options(made, "TextGrid (the default), json, ctm, srt, vtt, txt; several: ctm,srt")
    return made


def run(arguments: argparse.Namespace) -> int:
    from sonant.decoding.decoder import GreedyConfig
    from sonant.recipes.align import align_into
    from sonant.recipes.opening import Opening
    from sonant.recipes.texts_beside import with_texts
    from sonant.recipes.transcribe import check_formats, on_channel, recordings

    check_answer_options(arguments)
    formats = check_formats(words(arguments.format or "TextGrid"))
    opening = Opening(bundle=arguments.bundle, decoding=GreedyConfig(), device=arguments.device)
    transcriber = opening.open(say)
    found = on_channel(recordings(arguments.recordings, arguments.split), arguments.channel)
    pairs = with_texts(found, arguments.text)
    if not arguments.out:
        return _print_all(transcriber, pairs, arguments)
    made_by = opening.made_by() | {"decoding": "of given texts", "channel": channel_in_words(arguments)}
    done = align_into(transcriber, pairs, arguments.out, formats, made_by=made_by, again=arguments.again, say=say)
    print(_told(done, arguments.out))
    return 3 if done.failures else 0


def _print_all(transcriber: Transcriber, pairs: Paired, arguments: argparse.Namespace) -> int:
    from sonant.inference.transcriber import Failure
    from sonant.recipes.align import Unwritten, results

    unwritten, num_failed = Unwritten(transcriber), 0
    for _, result in results(transcriber, pairs, unwritten):
        if isinstance(result, Failure):
            num_failed += 1
            say(str(result.error))
        elif arguments.json:
            print(json.dumps(result.as_dict(), ensure_ascii=False), flush=True)
        else:
            print(_in_words(result), flush=True)
    if unwritten.counts:
        say(str(unwritten))
    return 3 if num_failed else 0


def _in_words(found: Transcript) -> str:
    """A line a word: start and end in seconds, confidence, the word."""
    head = f"# {found.name}: {found.seconds:.2f} s, score {(found.score or 0):.3f}, confidence {found.confidence:.3f}"
    lines = [f"{word.start:.2f}\t{word.end:.2f}\t{word.confidence:.3f}\t{word.text}" for word in found.words]
    return "\n".join([head + (f", skipped: {' '.join(found.skipped)}" if found.skipped else ""), *lines])


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
