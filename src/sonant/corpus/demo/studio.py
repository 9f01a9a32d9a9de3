"""Speaks the demo corpus into a folder, on all cores; a studio that was interrupted goes on where it was."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

from sonant.base import config as configuration
from sonant.base import storage
from sonant.base.progress import Progress
from sonant.corpus.demo.plan import DemoConfig, Performance, performances
from sonant.corpus.demo.speech import WRITTEN_RATE, as_flac, speak
from sonant.corpus.demo.synthesizer import espeak
from sonant.corpus.demo.voices import lay_out_voices, sex_of

TRUTH = "spoken.jsonl"  # the config in the first line, then a line an utterance
_WAVE = 32  # performances in the air at once for each worker

Line = dict[str, Any]


def record_demo(folder: str, config: DemoConfig, workers: int = 0) -> str:
    """Speaks until there are so many hours; gives the folder, which is then a source like any other."""
    os.makedirs(folder, exist_ok=True)
    done = _keep_spoken(folder, config)
    seconds = sum(line["seconds"] for line in done)
    with Progress("speaking", total=config.hours * 3600, unit="seconds") as bar:
        bar.advance(seconds)
        with open(os.path.join(folder, TRUTH), "a", encoding="utf-8") as truth:
            for line, flac in _spoken(config, len(done), workers or os.cpu_count() or 1):
                if seconds >= config.hours * 3600:
                    break
                with open(os.path.join(folder, line["audio"]), "wb") as file:
                    file.write(flac)
                truth.write(json.dumps(line) + "\n")
                truth.flush()  # behind its recording: what has a line is whole, also after a kill
                seconds += line["seconds"]
                bar.advance(line["seconds"])
    return folder


def read_truth(folder: str) -> Iterator[tuple[int, Line]]:
    """The lines about utterances, with their numbers."""
    with storage.open_binary(storage.join(folder, TRUTH)) as file:
        for number, line in enumerate(file, start=1):
            if number > 1 and line.endswith(b"\n"):
                yield number, json.loads(line)


def _keep_spoken(folder: str, config: DemoConfig) -> list[Line]:
    """What an earlier run left that this one wants too; the rest is removed."""
    path = os.path.join(folder, TRUTH)
    head = json.dumps({"config": configuration.to_dict(config) | {"hours": None}}) + "\n"
    lines: list[Line] = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            is_same = file.readline() == head
        lines = [line for _, line in read_truth(folder)] if is_same else []
    kept, seconds = [], 0.0
    for line in lines:
        if seconds >= config.hours * 3600 or not os.path.exists(os.path.join(folder, line["audio"])):
            break
        kept.append(line)
        seconds += line["seconds"]
    storage.write_text(path, head + "".join(json.dumps(line) + "\n" for line in kept))
    _remove_others(folder, {line["audio"] for line in kept} | {TRUTH})
    return kept


def _remove_others(folder: str, wanted: set[str]) -> None:
    for name in os.listdir(folder):
        if name.startswith("demo-") and name.endswith(".flac") and name not in wanted:
            os.unlink(os.path.join(folder, name))


def _spoken(config: DemoConfig, skip: int, workers: int) -> Iterator[tuple[Line, bytes]]:
    """The truth about each performance and its recording, in order, without end."""
    ahead = islice(performances(config), skip, None)
    with tempfile.TemporaryDirectory() as voices:
        lay_out_voices(espeak()[1], voices)
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(workers, context, initializer=_leave_interrupts_to_the_parent) as pool:
            while True:
                wave = list(islice(ahead, _WAVE * workers))
                yield from pool.map(partial(_record, voices, config.seed), wave, chunksize=4)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _record(voices: str, seed: int, performance: Performance) -> tuple[Line, bytes]:
    samples, words = speak(performance, voices, seed)
    request = performance.request
    line = {
        "id": performance.id,
        "audio": f"{performance.id}.flac",
        "seconds": len(samples) / WRITTEN_RATE,
        "text": request.text,
        "speaker": performance.variant,
        "split": performance.split,
        "labels": performance.symptoms.labels(),
        "accent": performance.accent,
        "sex": sex_of(performance.variant, espeak()[1]),
        "words_per_minute": request.words_per_minute,
        "pitch": request.pitch,
        "pitch_range": request.pitch_range,
        "words": [[word, round(start, 4), round(end, 4)] for word, start, end in words],
    }
    return line, as_flac(samples)
