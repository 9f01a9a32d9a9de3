"""Corpora of recordings in buckets and on web servers, written here and there, opened and loaded from there."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

import sonant
from sonant.base import storage
from sonant.base.errors import ManifestError
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.corpus.preparation.config import Limits
from sonant.corpus.preparation.run import PrepareResult
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.splits import SplitConfig, Splits, load_splits, save_splits

pytestmark = pytest.mark.slow  # each asks servers for hundreds of answers

RATE = 8000
COUNT = 8


def samples(seed: int) -> np.ndarray:
    """Noise that ends in silence: the emulator of gs:// loses a last byte that looks like the end of a line."""
    noise = np.random.default_rng(seed).integers(-9000, 9000, 2000).astype(np.int16)
    noise[-4:] = 0
    return noise


def wav(seed: int) -> bytes:
    content = io.BytesIO()
    soundfile.write(content, samples(seed), RATE, format="WAV", subtype="PCM_16")
    return content.getvalue()


TABLE = "audio,text,speaker\n" + "".join(f"wav/u{n}.wav,said {n},p{n % 4}\n" for n in range(COUNT))
FILES = {"t.csv": TABLE.encode()} | {f"wav/u{n}.wav": wav(n) for n in range(COUNT)}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    """Journals of corpora in buckets, and copies of archives, lie in the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(params=["s3_bucket", "gs_bucket"])
def root(request, tmp_path) -> str:
    """An empty place in a bucket."""
    return f"{request.getfixturevalue(request.param)}/{tmp_path.name}"


@pytest.fixture
def put(root) -> Callable[..., str]:
    """Writes files into the bucket and gives their folder."""

    def write(files: Mapping[str, bytes], name: str = "set") -> str:
        for file, content in files.items():
            storage.write_whole(storage.join(root, name, file), lambda target, content=content: target.write(content))
        return storage.join(root, name)

    return write


def prepare(source: str, corpus: str, /, **fields: Any) -> PrepareResult:
    return sonant.prepare(source, corpus, replace(sonant.PrepareConfig(workers=1, limits=Limits()), **fields))


def check_speech(corpus: sonant.Corpus, count: int = COUNT) -> None:
    """Every utterance is there and sounds as it did."""
    assert len(corpus) == count
    make = SpeechExamples(ExampleConfig(sample_rate=RATE))
    for number, utterance in enumerate(sorted(corpus, key=lambda one: str(one.text))):
        assert utterance.text == f"said {number}"
        np.testing.assert_array_equal(make(utterance, 0).waveform, samples(number).astype(np.float32) / 32768)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_table_in_a_bucket_becomes_a_corpus_in_a_bucket(put, root, workers):
    made = prepare(put(FILES), f"{root}/corpus", workers=workers)
    assert (made.num_utterances, made.num_decoded) == (COUNT, COUNT)
    corpus = sonant.open_corpus(f"{root}/corpus")
    assert all(one.audio.startswith(f"{root}/set/wav/") for one in corpus)
    assert sum(corpus.splits.values()) == COUNT
    check_speech(corpus)


def test_a_table_in_a_bucket_becomes_a_corpus_here_of_the_same_fingerprint(put, tmp_path):
    here = tmp_path / "set"
    for name, content in FILES.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(content)
    prepare(put(FILES), str(tmp_path / "there"))
    prepare(str(here), str(tmp_path / "local"))
    one, other = (sonant.open_corpus(str(tmp_path / name)) for name in ("there", "local"))
    assert one.description["fingerprint"] == other.description["fingerprint"]
    check_speech(one)


def test_preparing_again_decodes_only_what_has_changed_in_the_bucket(put, root):
    source = put(FILES)
    prepare(source, f"{root}/corpus")
    again = prepare(source, f"{root}/corpus")
    assert again.num_decoded == 0
    put({"wav/u3.wav": wav(33)})
    assert prepare(source, f"{root}/corpus").num_decoded == 1


def test_recordings_of_this_machine_are_told_unless_they_are_packed(put, root, tmp_path):
    for name, content in FILES.items():
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_bytes(content)
    assert prepare(str(tmp_path / "set"), f"{root}/bare").warnings["local-audio"] == 1
    assert "local-audio" not in prepare(str(tmp_path / "set"), f"{root}/packed", pack=True).warnings
    (tmp_path / "set").rename(tmp_path / "gone")
    corpus = sonant.open_corpus(f"{root}/packed")
    assert all(one.audio.startswith(f"{root}/packed/audio/") for one in corpus)
    check_speech(corpus)


def test_splits_of_a_bucket_are_reopened_by_plan_and_taken_over(put, root, tmp_path):
    source = put(FILES)
    prepare(source, f"{root}/corpus", splits=SplitConfig(by="speaker", seeds=(0, 1)))
    corpus = sonant.open_corpus(f"{root}/corpus")
    assert len(corpus.plans) == 2
    second = {one.id: one.split for one in corpus.with_plan(corpus.plans[1])}
    splits = SplitConfig(by="file", file=f"{root}/corpus/splits.parquet", plan=corpus.plans[1])
    prepare(source, str(tmp_path / "other"), splits=splits)
    assert {one.id: one.split for one in sonant.open_corpus(str(tmp_path / "other"))} == second


def test_splits_saved_in_a_bucket_are_loaded_as_they_were(root):
    splits = Splits(("a", "b", "c"), {"seed0": ("train", None, "test"), "seed1": ("dev", "train", None)})
    save_splits(f"{root}/splits.parquet", splits)
    again = load_splits(f"{root}/splits.parquet")
    assert tuple(again.ids) == splits.ids
    for plan in splits.plans:
        assert tuple(again.plan(plan)) == tuple(splits.plan(plan))


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_an_archive_in_a_bucket(put, root, kind, packed):
    location = f"{put({f'x.{kind}': packed(kind)})}/x.{kind}"
    made = prepare(location, f"{root}/corpus")
    assert made.warnings.get("kept-copy", 0) == (kind == "tar.gz")
    corpus = sonant.open_corpus(f"{root}/corpus")
    assert all(one.audio.startswith(f"{location}#") for one in corpus) == (kind != "tar.gz")
    check_speech(corpus)


@pytest.fixture
def packed(tmp_path) -> Callable[[str], bytes]:
    def content(kind: str) -> bytes:
        import tarfile

        target = io.BytesIO()
        if kind == "zip":
            with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, body in FILES.items():
                    archive.writestr(name, body)
            return target.getvalue()
        with tarfile.open(fileobj=target, mode="w:gz" if kind == "tar.gz" else "w") as archive:
            for name, body in FILES.items():
                info = tarfile.TarInfo(name)
                info.size = len(body)
                archive.addfile(info, io.BytesIO(body))
        return target.getvalue()

    return content


def dataset(rows: range) -> pa.Table:
    audio = [{"bytes": wav(row), "path": f"{row}.wav"} for row in rows]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({"audio": pa.array(audio, kind), "text": [f"said {row}" for row in rows]})


def test_files_of_the_hub_in_a_bucket(put, root):
    target = io.BytesIO()
    pq.write_table(dataset(range(COUNT)), target, row_group_size=3)
    prepare(put({"data/train-00000-of-00001.parquet": target.getvalue()}), f"{root}/corpus")
    corpus = sonant.open_corpus(f"{root}/corpus")
    assert corpus.splits == {"train": COUNT}
    check_speech(corpus)


def test_a_dataset_saved_in_shards_in_a_bucket(put, root):
    files = {}
    for number in range(2):
        target, table = io.BytesIO(), dataset(range(number * 4, number * 4 + 4))
        with pa.ipc.new_stream(target, table.schema) as stream:
            stream.write_table(table)
        files[f"train/{number}/data-00000-of-00001.arrow"] = target.getvalue()
        state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
        files[f"train/{number}/state.json"] = json.dumps(state).encode()
    prepare(put(files), f"{root}/corpus")
    corpus = sonant.open_corpus(f"{root}/corpus")
    assert corpus.splits == {"train": COUNT}
    check_speech(corpus)


def test_what_is_missing_in_a_bucket_is_told_by_its_line(put, root):
    files = {name: content for name, content in FILES.items() if name != "wav/u5.wav"}
    with pytest.raises(ManifestError, match=r"set/t\.csv:7: the recording 'wav/u5\.wav'"):
        prepare(put(files), f"{root}/corpus")
    prepare(put(files), f"{root}/corpus", skip_invalid=True)
    assert len(sonant.open_corpus(f"{root}/corpus")) == COUNT - 1
    assert b"missing-audio" in storage.read_bytes(f"{root}/corpus/rejected.csv")


# --- the web


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_an_archive_on_a_web_server_with_or_without_ranges(web, tmp_path, kind, packed):
    (tmp_path / "web" / f"x.{kind}").write_bytes(packed(kind))
    made = prepare(f"{web}/x.{kind}", str(tmp_path / "corpus"))
    is_whole = not storage.remote.gives_ranges(f"{web}/x.{kind}")
    assert made.warnings.get("kept-copy", 0) == (is_whole or kind == "tar.gz")
    check_speech(sonant.open_corpus(str(tmp_path / "corpus")))


def test_a_table_on_a_web_server_with_recordings_beside_it(web, tmp_path):
    for name, content in FILES.items():
        (tmp_path / "web" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "web" / name).write_bytes(content)
    prepare(f"{web}/t.csv", str(tmp_path / "corpus"))
    corpus = sonant.open_corpus(str(tmp_path / "corpus"))
    assert all(one.audio.startswith(f"{web}/wav/") for one in corpus)
    check_speech(corpus)


def test_a_single_file_of_the_hub_on_a_web_server(web, tmp_path):
    pq.write_table(dataset(range(COUNT)), tmp_path / "web" / "x.parquet")
    prepare(f"{web}/x.parquet", str(tmp_path / "corpus"), source=SourceOptions(split="train"))
    corpus = sonant.open_corpus(str(tmp_path / "corpus"))
    assert corpus.splits == {"train": COUNT}
    check_speech(corpus)
