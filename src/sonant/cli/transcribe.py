"""`sonant transcribe`: recordings become texts, captions and timed words."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sonant.cli.answers import (
    add_answer_options,
    add_bundle_and_recordings,
    channel_in_words,
    check_answer_options,
    say,
)
from sonant.cli.main import VERBS
from sonant.cli.parser import Parser, words
from sonant.cli.search import add_search_options, decoding_asked_for, search_settings

if TYPE_CHECKING:
    from sonant.checkpoints.bundle import Bundle
    from sonant.inference.transcriber import TranscriberConfig
    from sonant.recipes.opening import AnyOpening
    from sonant.recipes.transcribe import Answering, Named

_PAUSE_SECONDS = 0.3
_OPTIONS = {"num_best": "--num-best", "window_seconds": "--window", "pause_seconds": "--pause"}
_EPILOG = """\
examples:
  sonant transcribe run/bundle talk.flac                            print what is said
  sonant transcribe run/bundle talks/ --out texts --format txt,srt  a folder, a file each; run it again and it goes on
  sonant transcribe run/bundle 'talks/*.mp3' s3://bucket/more --json
  sonant transcribe run/bundle my-corpus --split test --out texts --format json --beam 20 --num-best 5
  sonant transcribe run/bundle meeting.mp3 --vad energy --out texts --format srt      hours long: cut in its pauses
  sonant transcribe run/bundle gs://bucket/calls --out gs://bucket/texts --engine ray
  sonant transcribe run/bundle call.wav --ngram words.ngram --hot-word Nguyen --hot-word "atrial fibrillation"

With --out, recordings that cannot be heard are lines of DIR/failures.csv, and the others go on.
"""


def parser() -> Parser:
    made = Parser("transcribe", VERBS["transcribe"], _EPILOG)
    add_bundle_and_recordings(made)
    add_answer_options(made, "txt (the default), json, srt, vtt, ctm, TextGrid; several: txt,srt")
    made.add_argument("--num-best", metavar="N", type=int, help="answers for each recording (1); needs a search")
    made.add_argument("--precision", choices=("fp32", "bf16"), metavar="KIND", help="fp32 (the default) or bf16")
    group = made.add_argument_group(
        "long recordings", "in windows that overlap; or cut in pauses, where there are some"
    )
    group.add_argument("--vad", choices=("energy", "webrtc"), metavar="KIND", help="cut in pauses: energy or webrtc")
    group.add_argument("--pause", metavar="SECONDS", type=float, help="the shortest that counts (0.3), with --vad")
    group.add_argument("--window", metavar="SECONDS", type=float, help="the longest that is heard at once (30)")
    group = made.add_argument_group("many recordings")
    group.add_argument("--engine", choices=("local", "ray"), metavar="KIND", default="local", help="local, or ray")
    group.add_argument("--workers", metavar="N", type=int, help="of --engine ray: one for each processor if not given")
    add_search_options(made)
    return made


def run(arguments: argparse.Namespace) -> int:
    from sonant.checkpoints.bundle import open_bundle
    from sonant.recipes.transcribe import check_formats, on_channel, recordings

    _check(arguments)
    formats = check_formats(words(arguments.format or "txt"))
    opening = _opening(open_bundle(arguments.bundle), arguments)
    found = on_channel(recordings(arguments.recordings, arguments.split), arguments.channel)
    transcriber = _opened(opening, arguments)
    if not arguments.out:
        return _print_all(transcriber, found, arguments)
    return _write_all(transcriber, found, opening, formats, arguments)


def _opening(bundle: Bundle, arguments: argparse.Namespace) -> AnyOpening:
    from sonant.base.errors import UsageError
    from sonant.decoding.decoder import GreedyConfig
    from sonant.recipes.opening import Opening, WritingOpening
    from sonant.recipes.seq2seq_decoding import asked_writing

    bundle.require_task("ctc", "seq2seq")
    config, device = _config(arguments), arguments.device
    if bundle.description.task == "seq2seq":
        writing = asked_writing(bundle, search_settings(arguments), is_greedy=arguments.greedy)
        return WritingOpening(bundle=bundle.folder, writing=writing, device=device, config=config)
    decoding = decoding_asked_for(bundle, arguments)
    if (arguments.num_best or 1) > 1 and isinstance(decoding, GreedyConfig):
        action = "Search: --beam 10, or leave --num-best out."
        raise UsageError("--num-best", "one answer is all that there is without a search.", action)
    return Opening(bundle=bundle.folder, decoding=decoding, device=device, config=config)


def _check(arguments: argparse.Namespace) -> None:
    from sonant.base.errors import UsageError

    check_answer_options(arguments)
    if arguments.pause is not None and not arguments.vad:
        raise UsageError("--pause", "it has no effect without --vad.", "Write --vad energy, or leave it out.")
    if arguments.workers is not None and arguments.engine != "ray":
        raise UsageError("--workers", "it has no effect without --engine ray.", "Leave it out.")
    if arguments.workers is not None and arguments.workers < 1:
        raise UsageError("--workers", f"{arguments.workers} was given, at least 1 is needed.", "Leave it out for all.")


def _config(arguments: argparse.Namespace) -> TranscriberConfig:
    from sonant.audio.voice_activity import EnergyDetector, WebRtcDetector
    from sonant.base.errors import ConfigError, UsageError
    from sonant.inference.transcriber import TranscriberConfig

    given: dict[str, Any] = {}
    if arguments.window is not None:
        given |= {"window_seconds": arguments.window, "context_seconds": min(arguments.window / 7.5, 4.0)}
    if arguments.num_best is not None:
        given["num_best"] = arguments.num_best
    if arguments.precision:
        given["precision"] = arguments.precision
    try:
        if arguments.vad:
            kind = EnergyDetector if arguments.vad == "energy" else WebRtcDetector
            given["detector"] = kind(pause_seconds=_PAUSE_SECONDS if arguments.pause is None else arguments.pause)
        return TranscriberConfig(**given)
    except ConfigError as error:
        raise UsageError(_OPTIONS.get(error.where, error.where), error.problem, error.action) from error


def _opened(opening: AnyOpening, arguments: argparse.Namespace) -> Answering:
    if arguments.engine == "ray":
        from sonant.recipes.transcribe_on_ray import OnRay

        return OnRay(opening, arguments.workers or 0)
    return opening.open(say)


def _write_all(
    transcriber: Answering,
    found: Iterable[Named],
    opening: AnyOpening,
    formats: Sequence[str],
    arguments: argparse.Namespace,
) -> int:
    from sonant.recipes.transcribe import transcribe_into

    folder, made_by = arguments.out, opening.made_by() | {"channel": channel_in_words(arguments)}
    done = transcribe_into(transcriber, found, folder, formats, made_by=made_by, again=arguments.again, say=say)
    failed = f"; {len(done.failures):,} failed, see {folder}/failures.csv" if done.failures else ""
    print(f"{folder}: {done}{failed}")
    return 3 if done.failures else 0


def _print_all(transcriber: Answering, found: Iterable[Named], arguments: argparse.Namespace) -> int:
    from sonant.inference.transcriber import Failure
    from sonant.recipes.transcribe import results

    num_failed, several = 0, len(arguments.recordings) > 1
    for name, result in results(transcriber, found):
        if isinstance(result, Failure):
            num_failed += 1
            say(str(result.error))
        elif arguments.json:
            print(json.dumps(result.as_dict(), ensure_ascii=False), flush=True)
        else:
            several = several or name != _name_alone(arguments.recordings[0])
            print(f"{name}\t{result.text}" if several else result.text, flush=True)
    return 3 if num_failed else 0


def _name_alone(place: str) -> str:
    return place.rpartition("/")[2].rpartition(".")[0] or place.rpartition("/")[2]
