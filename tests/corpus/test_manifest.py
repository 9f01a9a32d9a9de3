"""The corpus folder: what is written is read, and what breaks the contract is refused with the way out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import ManifestError, UsageError
from sonant.corpus.manifest import open_corpus, schema_for, write_description, write_manifest

LABELS = {"score": "number", "who": "string", "tags": "strings"}
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "id": texts,
            "audio": st.sampled_from(["a.wav", "sub/b.flac", "s3://bucket/c.ogg", "shard.tar#d.wav"]),
            "start": st.floats(0, 1e4),
            "seconds": st.floats(0.1, 1e3),
            "sample_rate": st.integers(4000, 192000),
            "channel": st.none() | st.integers(0, 7),
            "text": st.none() | texts,
            "speaker": st.none() | texts,
            "split": st.none() | st.sampled_from(["train", "dev", "test"]),
            "labels": st.fixed_dictionaries(
                {
                    "score": st.none() | st.floats(-9, 9),
                    "who": st.none() | texts,
                    "tags": st.none() | st.lists(texts, max_size=2),
                }
            ),
            "tokens": st.none() | st.lists(st.integers(0, 99), max_size=3),
            "further": st.none() | texts,
        }
    ),
    max_size=6,
)


def write(folder, said, *, fingerprint="f", **description):
    schema = schema_for(LABELS, {"further": "string"}, with_tokens=True)
    pieces = [said[first : first + 2] for first in range(0, len(said), 2)]
    tables = [pa.Table.from_pylist(piece, schema) for piece in pieces]
    write_manifest(str(folder), schema, tables, lambda: fingerprint)
    write_description(str(folder), {"fingerprint": fingerprint, "labels": LABELS, **description})


@settings(max_examples=60, deadline=None)
@given(rows)
def test_what_is_written_is_read(tmp_path_factory, said):
    folder = tmp_path_factory.mktemp("corpus")
    write(folder, said)
    corpus = open_corpus(str(folder))
    assert len(corpus) == len(said)
    for number, (one, row) in enumerate(zip(corpus, said, strict=True)):
        same = ("id", "start", "seconds", "sample_rate", "channel", "text", "speaker", "split", "labels")
        assert {name: getattr(one, name) for name in same} == {name: row[name] for name in same}
        assert (one.tokens or ()) == tuple(row["tokens"] or ())
        assert one.extra["further"] == row["further"]
        assert one.audio == (row["audio"] if "://" in row["audio"] else os.path.join(folder, row["audio"]))
        assert one.place == f"{folder}/manifest.parquet:{number + 1}"


@pytest.fixture
def corpus(tmp_path):
    said = [
        {"id": f"u{n}", "audio": f"u{n}.wav", "start": 0.0, "seconds": 1.0 + n, "split": split}
        | {"labels": {"score": float(n) if n else None, "who": "ab"[n % 2], "tags": ["x"] * n}}
        for n, split in enumerate(["train", "test", None, "train"])
    ]
    write(tmp_path / "corpus", said, splits={"plans": ["seed0", "seed1"]})
    return open_corpus(str(tmp_path / "corpus"))


def test_columns_and_labels_come_as_arrays(corpus):
    np.testing.assert_array_equal(corpus.seconds, [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(corpus.column("score"), [np.nan, 1.0, 2.0, 3.0])
    assert list(corpus.column("who")) == ["a", "b", "a", "b"]
    assert corpus.hours == pytest.approx(10 / 3600)
    assert corpus.splits == {"train": 2, "test": 1}


def test_utterances_are_counted_from_either_end_and_no_further(corpus):
    assert corpus[-1] == corpus[3] == list(corpus)[3]
    for beyond in (4, -5):
        with pytest.raises(IndexError, match="has 4 utterances"):
            corpus[beyond]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda corpus: corpus.column("scor"), r"no column 'scor'\. Did you mean 'score'\?"),
        (lambda corpus: corpus.split("tran"), r"no split 'tran'\. Did you mean 'train'\?"),
        (lambda corpus: corpus.split("train", plan="seed2"), r"no plan 'seed2'\. Did you mean 'seed"),
    ],
)
def test_a_name_that_does_not_exist_is_answered_with_the_nearest(corpus, ask, says):
    with pytest.raises(UsageError, match=says):
        ask(corpus)


def test_an_empty_selection_is_a_corpus_too(corpus):
    none = corpus.where(np.zeros(4, bool))
    assert len(none) == len(list(none)) == none.hours == 0
    assert none.splits == {}
    assert none.column("score").size == 0


def _remove(name):
    return lambda folder: (folder / name).unlink()


def _damage(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def _without_a_column(folder):
    table = pq.read_table(folder / "manifest.parquet")
    pq.write_table(table.drop_columns(["seconds", "split"]), folder / "manifest.parquet")


def _of_another_time(folder):
    description = json.loads((folder / "corpus.json").read_text())
    (folder / "corpus.json").write_text(json.dumps(description | {"fingerprint": "other"}))


def _of_another_format(folder):
    (folder / "corpus.json").write_text('{"format": 99}')


@pytest.mark.parametrize(
    ("spoil", "where", "says"),
    [
        (_remove("manifest.parquet"), "", r"this is not a corpus: manifest\.parquet is missing\. Prepare it first"),
        (_damage("manifest.parquet", b"PAR1 no more"), "/manifest.parquet", r"cannot be read.*prepare` again"),
        (
            _without_a_column,
            "/manifest.parquet",
            r"the columns seconds, split are missing\. Run `sonant prepare` again",
        ),
        (
            _remove("corpus.json"),
            "/corpus.json",
            r"it is missing beside manifest\.parquet\. Run `sonant prepare` again",
        ),
        (_damage("corpus.json", b"{"), "/corpus.json", r"this is not JSON.*prepare` again"),
        (_of_another_time, "/manifest.parquet", r"does not belong to corpus\.json: a preparation was stopped between"),
        (_of_another_format, "/corpus.json", r"format 99 was found, 1 is read\."),
    ],
)
def test_a_folder_that_breaks_the_contract_is_refused(corpus, spoil, where, says):
    spoil(Path(corpus.folder))
    with pytest.raises(ManifestError, match=says) as refused:
        open_corpus(corpus.folder)
    assert refused.value.where == corpus.folder + where
