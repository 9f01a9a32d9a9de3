"""`sonant transcribe`: recordings become texts, captions and timed words."""

from __future__ import annotations

import argparse
import json
import sys

from sonant.cli.main import VERBS
from sonant.cli.parser import Parser, words
from sonant.cli.search import add_search_options, decoding_asked_for

_EPILOG = """\
examples:
  sonant transcribe run/bundle talk.flac                            print what is said
  sonant transcribe run/bundle talks/ --out texts --format txt,srt  a folder, a file each; run it again and it goes on
  sonant transcribe run/bundle 'talks/*.mp3' s3://bucket/more --json
  sonant transcribe run/bundle my-corpus --split test --out texts --format json --beam 20 --num-best 5
  sonant transcribe run/bundle call.wav --ngram words.ngram --hot-word Nguyen --hot-word "atrial fibrillation"

With --out, recordings that cannot be heard are lines of DIR/failures.csv, and the others go on.
"""


def parser() -> Parser:
    made = Parser("transcribe", VERBS["transcribe"], _EPILOG)
    made.add_argument("bundle", metavar="BUNDLE", help="the folder 'bundle' of a run, local or remote")
    made.add_argument("recordings", metavar="RECORDING", nargs="+", help="files, folders, 'patterns', URIs, corpora")
    made.add_argument("--out", metavar="DIR", help="write a file for each recording; without it, print")
    made.add_argument(
        "--format", metavar="KINDS", help="of --out: txt (the default), json, srt, vtt, ctm, TextGrid; several: txt,srt"
    )
    made.add_argument("--again", action="store_true", help="with --out: also what is done already")
    made.add_argument("--split", metavar="NAME", help="of corpora; without it, all of them")
    made.add_argument("--num-best", metavar="N", type=int, help="answers for each recording (1); needs a search")
    made.add_argument("--device", metavar="NAME", default="cpu", help="cpu (the default) or cuda")
    made.add_argument("--json", action="store_true", help="print a line of JSON for each recording")
    add_search_options(made)
    return made


def run(arguments: argparse.Namespace) -> int:
    from sonant.base.errors import UsageError
    from sonant.checkpoints.bundle import open_bundle
    from sonant.inference.transcriber import Failure, Transcriber, TranscriberConfig
    from sonant.recipes.transcribe import check_formats, recordings, results, transcribe_into

    if arguments.format and not arguments.out:
        raise UsageError("--format", "it is that of files, and none are written.", "Give --out, or --json to print.")
    if arguments.again and not arguments.out:
        raise UsageError("--again", "it has no effect without --out.", "Leave it out.")
    formats = check_formats(words(arguments.format or "txt"))
    config = TranscriberConfig(**({"num_best": arguments.num_best} if arguments.num_best else {}))
    bundle = open_bundle(arguments.bundle)
    bundle.require_task("ctc")
    decoding = decoding_asked_for(bundle, arguments)
    transcriber = Transcriber.open(arguments.bundle, arguments.device, config, decoding, _say)
    found = recordings(arguments.recordings, arguments.split)
    num_failed = 0
    if arguments.out:
        done = transcribe_into(transcriber, found, arguments.out, formats, again=arguments.again, say=_say)
        told = f"{arguments.out}: {done.num_written:,} recordings, {done.seconds / 3600:.2f} h"
        told += f"; {done.num_skipped:,} were done already" if done.num_skipped else ""
        told += f"; {len(done.failures):,} failed, see {arguments.out}/failures.csv" if done.failures else ""
        print(told)
        return 3 if done.failures else 0
    several = None
    for name, result in results(transcriber, found):
        if isinstance(result, Failure):
            num_failed += 1
            _say(str(result.error))
        elif arguments.json:
            print(json.dumps(result.as_dict(), ensure_ascii=False), flush=True)
        else:
            several = several or len(arguments.recordings) > 1 or name != _name_alone(arguments.recordings[0])
            print(f"{name}\t{result.text}" if several else result.text, flush=True)
    return 3 if num_failed else 0


def _name_alone(place: str) -> str:
    return place.rpartition("/")[2].rpartition(".")[0] or place.rpartition("/")[2]


def _say(sentence: str) -> None:
    print(f"sonant: {sentence}", file=sys.stderr)
