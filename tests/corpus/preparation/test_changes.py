"""Whatever changes between two preparations is noticed, and only that is heard again."""

from __future__ import annotations

import os

import pytest

import sonant
from sonant.base.errors import ConfigError, ManifestError, UsageError
from sonant.corpus.preparation.config import Limits


@pytest.fixture
def open_prepared(tmp_path):
    return lambda name="corpus": sonant.open_corpus(str(tmp_path / name))


def test_a_recording_that_was_replaced_is_heard_again(lay, prepared, open_prepared):
    laid = lay(10)
    table = laid.table()
    prepared(table)
    before = open_prepared()
    laid.write("a3.wav", laid.speech(0.75, seed=70))
    assert prepared(table).num_decoded == 1
    after = open_prepared()
    assert after[3].seconds == 0.75
    assert after.description["fingerprint"] != before.description["fingerprint"]
    others = [row for row in range(10) if row != 3]
    assert after.take(others) == before.take(others)


def test_a_recording_of_the_same_size_and_another_time_is_heard_again(lay, prepared, open_prepared):
    laid = lay(4)
    table = laid.table()
    prepared(table)
    before = open_prepared()[2].extra["content"]
    laid.write("a2.wav", laid.speech(seed=70))
    os.utime(laid.folder / "a2.wav", ns=(1, 1))
    assert prepared(table).num_decoded == 1
    assert open_prepared()[2].extra["content"] != before


def test_a_table_that_was_corrected_needs_no_decoding(lay, prepared, open_prepared):
    laid = lay(10)
    prepared(laid.table())
    laid.rows[4]["text"] = "do go on"
    laid.rows[5]["speaker"] = "somebody else"
    assert prepared(laid.table()).num_decoded == 0
    assert open_prepared()[4].text == "do go on"
    assert open_prepared()[5].speaker == "somebody else"


def test_a_path_spelt_in_another_way_is_the_same_recording(lay, prepared, tmp_path, monkeypatch):
    table = lay(4).table()
    prepared(table)
    manifest = (tmp_path / "corpus" / "manifest.parquet").read_bytes()
    monkeypatch.chdir(tmp_path / "set")
    assert prepared("table.csv").num_decoded == 0
    assert (tmp_path / "corpus" / "manifest.parquet").read_bytes() == manifest


def test_times_that_were_corrected_are_measured_anew(lay, prepared, open_prepared):
    laid = lay(6)
    laid.rows[1] |= {"start": "0.1", "end": "0.45", "text": "go on"}
    prepared(laid.table())
    laid.rows[1]["end"] = "0.4"
    assert prepared(laid.table()).num_decoded == 1
    assert open_prepared()[1].seconds == pytest.approx(0.3)


def test_new_rows_are_added_and_dropped_ones_leave(lay, prepared, open_prepared):
    laid = lay(8)
    prepared(laid.table())
    laid.add("new.wav", laid.speech(seed=80))
    del laid.rows[2]
    assert prepared(laid.table()).num_decoded == 1
    assert [one.audio.rpartition("/")[2] for one in open_prepared()][-1] == "new.wav"
    assert len(open_prepared()) == 8


def test_limits_judge_what_is_known_without_hearing_it_again(lay, prepared):
    laid = lay(8)
    laid.add("long.wav", laid.speech(2.0))
    table = laid.table()
    prepared(table)
    strict = Limits(max_seconds=1.0)
    with pytest.raises(ManifestError, match=r"table\.csv:10: 'long' lasts 2\.0 s; at most 1 s are allowed"):
        prepared(table, limits=strict)
    again = prepared(table, limits=strict, skip_invalid=True)
    assert (again.num_decoded, again.rejected) == (0, {"too-long": 1})


def test_a_mended_set_becomes_the_corpus_that_it_would_have_been(lay, prepared, open_prepared, tmp_path):
    laid = lay(8)
    whole = laid.folder / "a5.wav"
    content, stamp = whole.read_bytes(), whole.stat().st_mtime_ns
    whole.write_bytes(content[:3000])
    table = laid.table()
    with pytest.raises(ManifestError, match="truncated-audio"):
        prepared(table)
    whole.write_bytes(content)
    os.utime(whole, ns=(stamp, stamp))
    assert prepared(table).num_decoded == 1
    prepared(table, "fresh")
    for name in ("manifest.parquet", "findings.csv", "rejected.csv"):
        assert (tmp_path / "corpus" / name).read_bytes() == (tmp_path / "fresh" / name).read_bytes()


def test_a_corpus_does_not_lie_among_its_own_sources(lay, prepared):
    laid = lay(4)
    laid.table()
    with pytest.raises(UsageError, match="the corpus would lie among its own sources"):
        prepared(str(laid.folder), "set")
    prepared(str(laid.folder), "set/corpus")
    again = prepared(str(laid.folder), "set/corpus")  # what was written below it is no source
    assert (again.num_utterances, again.num_decoded) == (4, 0)


@pytest.mark.parametrize("low", [-1.0, 2.0])
def test_limits_that_exclude_everything_are_refused(low):
    with pytest.raises(ConfigError, match="0 <= min_seconds < max_seconds"):
        Limits(min_seconds=low, max_seconds=1.0)
