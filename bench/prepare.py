"""Preparing a corpus and a first epoch of loading, against `datasets` `.map` as the recognition examples do it.

The same 16-bit WAV files (made from real speech first), two processes on both sides, both warm, taken in turns.
Peer: `Dataset.map` with Wav2Vec2FeatureExtractor (soundfile reads: the newest torchcodec needs CUDA), `.filter` by
length, a DataLoader of two workers that pads batches of 8. Sonant: `sonant.prepare` (every sample validated), then its
loader and the same per-utterance normalisation. Every byte that either writes is counted.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import soundfile

from ground import (
    bytes_below,
    interleaved,
    median,
    peak_megabytes,
    processor_seconds,
    seconds_of,
    speech,
    spread,
)

MINUTES, PAIRS = 47, 5
PROCESSES = 2


def write_recordings(folder: Path, minutes: float, kind: str) -> float:
    """So many minutes of learners' English as a folder with a table; gives the hours."""
    source = speech() / "speechocean762"
    folder.mkdir(parents=True)
    texts = dict(line.split(maxsplit=1) for line in (source / "train/text").read_text().splitlines())
    rows, seconds = ["id,path,text"], 0.0
    for line in (source / "train/wav.scp").read_text().splitlines():
        if seconds >= minutes * 60:
            break
        name, path = line.split()
        samples, rate = soundfile.read(source / path, dtype="float32")
        if kind == "wav":
            soundfile.write(folder / f"{name}.wav", samples, rate, subtype="PCM_16")
        else:
            shutil.copy(source / path, folder / f"{name}.{kind}")
        rows.append(f"{name},{name}.{kind},{texts[name]}")
        seconds += len(samples) / rate
    (folder / "recordings.csv").write_text("\n".join(rows) + "\n")
    return seconds / 3600


def with_sonant(recordings: Path, folder: Path) -> None:
    """Corpus, then an epoch of normalised batches."""
    import sonant
    from sonant.audio.features.front_end import build_front_end
    from sonant.audio.features.waveform import WaveformConfig
    from sonant.base.memory import keep_freed_memory
    from sonant.batches.bucketing import BucketingConfig
    from sonant.batches.collate import collate_speech
    from sonant.batches.examples import SpeechExamples
    from sonant.batches.loader import Loader, LoaderConfig
    from sonant.batches.source import CorpusSource

    keep_freed_memory()  # as training on a processor begins
    sonant.prepare(str(recordings), str(folder), sonant.PrepareConfig(workers=PROCESSES))
    corpus = sonant.open_corpus(str(folder))
    source = CorpusSource([corpus], SpeechExamples(), collate_speech, BucketingConfig(max_seconds=60))
    front_end = build_front_end(WaveformConfig())
    count = 0
    with Loader(source, LoaderConfig(workers=PROCESSES)) as loader:
        for batch in loader:
            front_end(batch.waveforms, batch.lengths)
            count += len(batch)
    assert count == len(corpus)


def with_datasets(recordings: Path, folder: Path) -> None:
    """Arrow cache, then an epoch of padded batches."""
    import csv

    import datasets
    import torch
    from transformers import Wav2Vec2FeatureExtractor

    datasets.disable_progress_bars()
    extractor = Wav2Vec2FeatureExtractor(do_normalize=True, return_attention_mask=True)

    def vectorize(example: dict) -> dict:
        samples, rate = soundfile.read(example["audio"]["path"], dtype="float32")
        values = extractor(samples, sampling_rate=rate).input_values[0]
        return {"input_values": values, "input_length": len(values), "text": example["text"]}

    with open(recordings / "recordings.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {"audio": [str(recordings / row["path"]) for row in rows], "text": [row["text"] for row in rows]}
    data = datasets.Dataset.from_dict(columns).cast_column("audio", datasets.Audio(decode=False))
    folder.mkdir(parents=True)
    data = data.map(
        vectorize,
        remove_columns=data.column_names,
        num_proc=PROCESSES,
        cache_file_name=str(folder / "vectorized.arrow"),
    )
    data = data.filter(
        lambda length: length > 1600,
        num_proc=PROCESSES,
        input_columns=["input_length"],
        cache_file_name=str(folder / "filtered.arrow"),
    )

    def collate(examples: list[dict]) -> dict:
        return extractor.pad(
            [{"input_values": one["input_values"]} for one in examples], padding=True, return_tensors="pt"
        )

    loader = torch.utils.data.DataLoader(
        data.with_format("numpy"), batch_size=8, shuffle=True, num_workers=PROCESSES, collate_fn=collate
    )
    count = sum(len(batch["input_values"]) for batch in loader)
    assert count == len(rows)


SIDES = {"sonant": with_sonant, "datasets": with_datasets}


def fresh(side: str, recordings: Path, room: Path) -> None:
    folder = room / side
    shutil.rmtree(folder, ignore_errors=True)
    SIDES[side](recordings, folder)


def decoding_floor(recordings: Path) -> float:
    """Seconds that bare decoding of every file takes on one core."""

    def decode() -> None:
        for path in sorted(recordings.glob("*.ogg")):
            soundfile.read(path, dtype="float32")

    return median([seconds_of(decode) for _ in range(3)])


def measure(room: Path, pairs: int) -> None:
    logging.disable(logging.WARNING)
    hours = write_recordings(room / "wav", MINUTES, "wav")
    write_recordings(room / "wav long", MINUTES * 3, "wav")
    write_recordings(room / "opus", MINUTES, "ogg")
    files = len(list((room / "wav").glob("*.wav")))
    print(f"{hours * 60:.0f} minutes, {files} files of 16-bit WAV, {PROCESSES} processes\n")
    for side in SIDES:
        fresh(side, room / "wav", room)  # imports, page cache
    taken = interleaved({side: lambda side=side: fresh(side, room / "wav", room) for side in SIDES}, pairs=pairs)
    busy = {side: processor_seconds(lambda side=side: fresh(side, room / "wav", room)) for side in SIDES}
    disk = {side: bytes_below(room / side) for side in SIDES}
    memory = {
        side: [peak_megabytes(__file__, side, room / name, room) for name in ("wav", "wav long")] for side in SIDES
    }
    print("side       prepare + first epoch          of processors   written      memory (with 3 times the audio)")
    for side, values in taken.items():
        flat = f"{memory[side][0]:.0f} MB ({memory[side][1]:.0f} MB)"
        print(f"{side:<9}  {spread(values):<29}  {busy[side]:.2f} s          {disk[side] / 1e6:7.2f} MB   {flat}")
    opus = interleaved({"opus": lambda: fresh("sonant", room / "opus", room)}, pairs)["opus"]
    floor = decoding_floor(room / "opus")
    print(
        f"\nSonant on the same speech as Opus: {spread(opus)}; it is decoded twice (validation, epoch), "
        f"which takes {2 * floor / PROCESSES:.3f} s on {PROCESSES} cores at the least"
    )
    print(f"time of processors, datasets / sonant: {busy['datasets'] / busy['sonant']:.2f}x")
    print(f"disk, datasets / sonant: {disk['datasets'] / disk['sonant']:.0f}x (10x wanted)")
    print(f"time, datasets / sonant: {median(taken['datasets']) / median(taken['sonant']):.2f}x (5x wanted)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="fewer where time is short")
    parser.add_argument("side", nargs="?", choices=sorted(SIDES), help="run one side once, for its memory")
    parser.add_argument("recordings", nargs="?", type=Path)
    parser.add_argument("room", nargs="?", type=Path)
    chosen = parser.parse_args()
    if chosen.side:
        fresh(chosen.side, chosen.recordings, chosen.room)
        return
    np.random.seed(0)
    with tempfile.TemporaryDirectory() as room:
        measure(Path(room), chosen.pairs)


if __name__ == "__main__":
    main()
