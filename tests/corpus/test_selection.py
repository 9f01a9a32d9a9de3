"""Utterances picked from a corpus are those that stand in the manifest, and say where."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sonant.corpus.manifest import Corpus, schema_for


@pytest.fixture
def corpus() -> Corpus:
    schema = schema_for({}, {}, with_tokens=False)
    splits = ["train", "test", None, "train", "test", "train"]
    rows = [
        {"id": f"u{i}", "audio": f"u{i}.wav", "start": 0.0, "seconds": 1.0, "split": split}
        for i, split in enumerate(splits)
    ]
    tables = [pa.Table.from_pylist(rows[first : first + 2], schema) for first in (0, 2, 4)]
    return Corpus("corpus", pa.concat_tables(tables), {})


def test_taken_utterances_are_those_of_iteration_in_the_order_asked(corpus):
    everything = list(corpus)
    assert corpus.take([4, 0, 4]) == [everything[4], everything[0], everything[4]]
    assert corpus[3] == everything[3]


def test_a_selection_keeps_the_places_of_the_manifest(corpus):
    train = corpus.split("train")
    last = train.where(np.array([False, False, True]))
    assert [utterance.place.rpartition(":")[2] for utterance in train] == ["1", "4", "6"]
    assert last.take([0]) == list(last) == [corpus[5]]
