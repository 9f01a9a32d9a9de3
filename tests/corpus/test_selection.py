"""Utterances picked from a corpus are those that stand in the manifest, and say where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sonant.corpus.manifest import Corpus, open_corpus, schema_for, write_description, write_manifest


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    schema = schema_for({}, {}, with_tokens=False)
    splits = ["train", "test", None, "train", "test", "train"]
    rows = [
        {"id": f"u{i}", "audio": f"u{i}.wav", "start": 0.0, "seconds": 1.0, "split": split}
        for i, split in enumerate(splits)
    ]
    write_manifest(str(tmp_path), schema, [pa.Table.from_pylist(rows[k : k + 2], schema) for k in (0, 2, 4)])
    write_description(str(tmp_path), {})
    return open_corpus(str(tmp_path))


def test_taken_utterances_are_those_of_iteration_in_the_order_asked(corpus):
    everything = list(corpus)
    assert corpus.take([4, 0, 4]) == [everything[4], everything[0], everything[4]]
    assert corpus[3] == everything[3]


def test_a_selection_keeps_the_places_of_the_manifest(corpus):
    train = corpus.split("train")
    last = train.where(np.array([False, False, True]))
    assert [utterance.place.rpartition(":")[2] for utterance in train] == ["1", "4", "6"]
    assert last.take([0]) == list(last) == [corpus[5]]
