"""Corpora of other toolkits with real sound in them, prepared to the end."""

from __future__ import annotations

import csv
import io
import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile

import sonant
from sonant.corpus.preparation.facts import content_of
from sonant.corpus.sources.options import SourceOptions

RATE = 8000
CUTS = [("r1", 0.5, 1.25), ("r1", 1.25, 2.0), ("r2", 0.0, 0.75)]  # recording, start and end in seconds
TEXTS = ["go on", "do so", "no go"]


@pytest.fixture
def folder(tmp_path, voiced) -> Path:
    """Two recordings of two seconds."""
    folder = tmp_path / "set"
    (folder / "wav").mkdir(parents=True)
    for number in (1, 2):
        soundfile.write(folder / f"wav/r{number}.wav", voiced(2.0, RATE, seed=number, pitch=90 * number), RATE)
    return folder


@pytest.fixture
def prepared(folder, tmp_path):
    """The rows of the manifest and the lines of rejected.csv that a layout gives."""

    def prepare(**options) -> tuple[list[dict], list[dict]]:
        corpus = str(tmp_path / "corpus")
        config = replace(sonant.PrepareConfig(workers=1), skip_invalid=True, source=SourceOptions(**options))
        sonant.prepare(str(folder), corpus, config)
        path = os.path.join(corpus, "rejected.csv")
        with open(path, encoding="utf-8", newline="") as file:
            rejected = list(csv.DictReader(file))
        return pq.read_table(os.path.join(corpus, "manifest.parquet")).to_pylist(), rejected

    return prepare


def lines(objects) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def as_kaldi(folder):
    (folder / "wav.scp").write_text("r1 wav/r1.wav\nr2 wav/r2.wav\n")
    (folder / "segments").write_text("".join(f"u{n} {r} {a} {b}\n" for n, (r, a, b) in enumerate(CUTS)))
    (folder / "text").write_text("".join(f"u{n} {text}\n" for n, text in enumerate(TEXTS)))


def as_wenet(folder):
    objects = (
        {"key": f"u{n}", "wav": f"wav/{r}.wav", "txt": text, "start": a, "end": b}
        for n, ((r, a, b), text) in enumerate(zip(CUTS, TEXTS, strict=True))
    )
    (folder / "data.list").write_text(lines(objects))


def as_shards(folder):
    (folder / "data.list").write_text("0.tar\n")
    with tarfile.open(folder / "0.tar", "w") as archive:
        for number, ((recording, start, end), text) in enumerate(zip(CUTS, TEXTS, strict=True)):
            samples, _ = soundfile.read(folder / f"wav/{recording}.wav", dtype="int16")
            wav = io.BytesIO()
            soundfile.write(wav, samples[int(start * RATE) : int(end * RATE)], RATE, format="WAV")
            for name, content in ((f"u{number}.txt", text.encode()), (f"u{number}.wav", wav.getvalue())):
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))


def as_nemo(folder):
    objects = (
        {"audio_filepath": f"wav/{r}.wav", "offset": a, "duration": b - a, "text": text, "id": f"u{n}"}
        for n, ((r, a, b), text) in enumerate(zip(CUTS, TEXTS, strict=True))
    )
    (folder / "manifest.json").write_text(lines(objects))


def recording(name) -> dict:
    source = {"type": "file", "channels": [0], "source": f"wav/{name}.wav"}
    return {"id": name, "sources": [source], "sampling_rate": RATE, "num_samples": 2 * RATE, "duration": 2.0}


def as_cuts(folder):
    objects = (
        {"id": f"u{n}", "start": a, "duration": b - a, "channel": 0, "type": "MonoCut", "recording": recording(r)}
        | {"supervisions": [{"id": f"s{n}", "start": 0, "duration": b - a, "text": text}]}
        for n, ((r, a, b), text) in enumerate(zip(CUTS, TEXTS, strict=True))
    )
    (folder / "cuts.jsonl").write_text(lines(objects))


def as_supervisions(folder):
    (folder / "recordings.jsonl").write_text(lines(map(recording, ("r1", "r2"))))
    objects = (
        {"id": f"u{n}", "recording_id": r, "start": a, "duration": b - a, "channel": 0, "text": text}
        for n, ((r, a, b), text) in enumerate(zip(CUTS, TEXTS, strict=True))
    )
    (folder / "supervisions.jsonl").write_text(lines(objects))


@pytest.mark.parametrize("lay_out", [as_kaldi, as_wenet, as_shards, as_nemo, as_cuts, as_supervisions])
def test_the_same_corpus_says_the_same_in_every_layout(folder, prepared, lay_out):
    lay_out(folder)
    rows, rejected = prepared()
    assert rejected == []
    assert [(row["id"], row["text"], row["seconds"]) for row in rows] == [
        ("u0", "go on", 0.75),
        ("u1", "do so", 0.75),
        ("u2", "no go", 0.75),
    ]
    for row, (name, start, end) in zip(rows, CUTS, strict=True):
        whole, _ = soundfile.read(folder / f"wav/{name}.wav", dtype="float32")
        samples = np.ascontiguousarray(whole[int(start * RATE) : int(end * RATE)])
        assert row["content"] == content_of(samples)


def test_recordings_are_read_out_of_archives_at_the_offset_that_is_told(folder, prepared):
    content, offsets = b"", []
    for name in ("r1", "r2"):
        content += f"{name} ".encode()
        offsets.append(len(content))
        content += (folder / f"wav/{name}.wav").read_bytes()
    (folder / "raw.ark").write_bytes(content)
    offsets.append(len(content) + 7)
    (folder / "wav.scp").write_text("".join(f"u{n} raw.ark:{offset}\n" for n, offset in enumerate(offsets)))
    rows, (rejected,) = prepared()
    assert [row["seconds"] for row in rows] == [2.0, 2.0]
    assert len({row["content"] for row in rows}) == 2
    assert (rejected["rule"], rejected["id"]) == ("unreadable-audio", "u2")
    assert rejected["place"].endswith("wav.scp:3")
    assert f"the archive ends at {len(content)}" in rejected["problem"]


@pytest.mark.parametrize(
    ("segment", "rule", "says"),
    [
        ("x r2 1.5 2.5", "end-beyond-recording", "ends at 2.50 s, but its recording lasts 2.00 s"),
        ("x r2 3 4", "end-beyond-recording", "ends at 4.00 s"),
        ("x r2 1 1.5 1", "missing-channel", "channel 1 is asked for"),
        ("x r1 0.5 1.25", "duplicated-audio", "sounds exactly as 'u0'"),
    ],
)
def test_segments_that_their_recording_has_not_are_rejected_by_line(folder, prepared, segment, rule, says):
    as_kaldi(folder)
    for name, line in (("segments", segment), ("text", "x so so")):
        with open(folder / name, "a") as file:
            file.write(line + "\n")
    rows, (rejected,) = prepared()
    assert len(rows) == 3
    assert (rejected["rule"], rejected["id"], rejected["place"]) == (rule, "x", f"{folder}/segments:4")
    assert says in rejected["problem"]


@pytest.mark.parametrize("lay_out", [as_kaldi, as_wenet, as_cuts])
def test_an_id_that_is_taken_is_rejected_by_line(folder, prepared, lay_out):
    lay_out(folder)
    file = folder / {as_kaldi: "segments", as_wenet: "data.list", as_cuts: "cuts.jsonl"}[lay_out]
    copy = file.read_text().splitlines()[0].replace("r1", "r2")
    file.write_text(file.read_text() + copy + "\n")
    rows, (rejected,) = prepared()
    assert len(rows) == 3
    assert (rejected["id"], rejected["place"]) == ("u0", f"{file}:4")


def test_ratings_and_speakers_join_a_kaldi_folder(folder, prepared):
    as_kaldi(folder)
    (folder / "utt2spk").write_text("u0 s1\nu1 s1\nu2 s2\n")
    (folder / "scores.csv").write_text("utterance,total\nu0,3\nu1,4\nu2,5\n")
    rows, rejected = prepared(annotations=("scores.csv",), labels=("total",))
    assert [row["labels"] for row in rows] == [{"total": 3.0}, {"total": 4.0}, {"total": 5.0}]
    assert rejected == []
    assert [row["speaker"] for row in rows] == ["s1", "s1", "s2"]
