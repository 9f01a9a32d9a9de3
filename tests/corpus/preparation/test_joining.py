"""Several sources become one corpus: ids stay unique, and namesakes stay different people unless told otherwise."""

from __future__ import annotations

import pytest

import sonant
from sonant.base.errors import UsageError
from sonant.corpus.preparation.joining import source_names


@pytest.fixture
def two(lay):
    """Two folders that use the same ids and the same names of speakers for other people."""
    first, second = lay(6, "first"), lay(0, "second")
    for number in range(6):
        second.add(f"a{number}.wav", second.speech(seed=200 + number))
    second.add("only.wav", second.speech(seed=220), speaker="nobody else")
    return first.table(), second.table()


def test_equal_ids_of_two_sources_are_told_apart_by_the_name_of_their_source(two, prepared, tmp_path):
    prepared(two)
    corpus = sonant.open_corpus(str(tmp_path / "corpus"))
    ids = [one.id for one in corpus]
    assert len(set(ids)) == len(ids) == 13
    assert ids[0] == "first/table/a0"
    assert ids[6] == "second/table/a0"
    assert {one.speaker for one in corpus} == {
        *(f"{name}/table/s{who}" for name in ("first", "second") for who in range(4)),
        "second/table/nobody else",
    }


def test_the_same_person_in_two_sources_is_one_where_that_is_said(two, prepared, tmp_path):
    prepared(two, share_speakers=True)
    corpus = sonant.open_corpus(str(tmp_path / "corpus"))
    assert {one.speaker for one in corpus} == {"s0", "s1", "s2", "s3", "nobody else"}


def test_sources_without_a_name_in_common_keep_their_ids(lay, prepared, tmp_path):
    first, second = lay(3, "first"), lay(0, "second")
    second.add("b.wav", second.speech(seed=50), speaker="t")
    prepared([first.table(), second.table()])
    assert [one.id for one in sonant.open_corpus(str(tmp_path / "corpus"))] == ["a0", "a1", "a2", "b"]


def test_the_order_of_the_sources_does_not_change_who_is_called_what(two, prepared, tmp_path):
    found = []
    for sources in (two, two[::-1]):
        prepared(sources)
        corpus = sonant.open_corpus(str(tmp_path / "corpus"))
        found.append(
            ({(one.id, one.speaker, one.split, one.text) for one in corpus}, corpus.description["fingerprint"])
        )
    assert found[0] == found[1]


def test_a_fault_names_the_id_as_the_corpus_calls_it(two, lay, prepared, listed):
    laid = lay(0, "third")
    laid.add("a0.wav", laid.speech(seed=300) * 0, speaker="x")
    prepared([*two, laid.table()], skip_invalid=True)
    (line,) = listed("rejected.csv")
    assert line["rule"] == "silent-audio"
    assert line["id"] == "third/table/a0"
    assert line["place"].endswith("third/table.csv:2")


@pytest.mark.parametrize(
    ("locations", "names"),
    [
        (["data/train"], ["train"]),
        (["data/train", "data/dev"], ["train", "dev"]),
        (["a/train", "b/train"], ["a/train", "b/train"]),
        (["/x/a.csv", "/x/b.csv"], ["a", "b"]),
        (["/x/a.csv", "/x/a.tsv"], ["1/a", "2/a"]),
        (["s3://bucket/a", "gs://bucket/a"], ["s3:/bucket/a", "gs:/bucket/a"]),
        (["/set", "/set/below"], ["set", "below"]),
    ],
)
def test_a_source_is_called_by_the_end_of_its_path(locations, names):
    assert source_names(locations) == names


@pytest.mark.parametrize("again", ["set", "./set", "other/../set", "set/"])
def test_a_source_given_twice_is_refused(again):
    with pytest.raises(UsageError, match=r"given twice\. Give it once\."):
        source_names(["set", again])
