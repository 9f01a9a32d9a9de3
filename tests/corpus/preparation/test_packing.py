"""A packed corpus holds its own sound: the same samples, readable when the sources are gone."""

from __future__ import annotations

import shutil
import tarfile

import numpy as np
import pytest

import sonant
from sonant.audio.waveform import read_waveform


@pytest.fixture
def varied(lay):
    """Utterances of every kind of sample, as whole files, as segments and as channels."""
    laid = lay(6)
    speech = laid.speech(1.0, seed=60)
    for number, subtype in enumerate(["PCM_16", "PCM_24", "FLOAT", "PCM_U8", "ULAW"]):
        laid.write(f"{subtype}.wav", laid.speech(seed=61 + number), subtype=subtype)
        laid.add(f"{subtype}.wav", id=subtype)
    laid.write("two.flac", np.stack([speech, laid.speech(1.0, seed=70)], axis=1))
    for number, channel in enumerate(["0", "1", ""]):
        laid.add("two.flac", id=f"channel {channel}", start=f"0.{number + 1}", end=f"0.{number + 5}", channel=channel)
    laid.write("b.ogg", laid.speech(seed=80), format="OGG", subtype="VORBIS")
    laid.add("b.ogg", id="../ä/odd:name")
    for row in laid.rows:
        row.setdefault("id", row["audio"].partition(".")[0])
    return laid


def read(corpus):
    return {
        one.id: read_waveform(one.audio, start=one.start, seconds=one.seconds, channel=one.channel) for one in corpus
    }


def test_a_packed_corpus_sounds_the_same_to_the_bit_without_its_sources(varied, prepared, tmp_path):
    table = varied.table()
    prepared(table, "addressed")
    expected = read(sonant.open_corpus(str(tmp_path / "addressed")))
    prepared(table, "packed", pack=True)
    shutil.rmtree(varied.folder)
    moved = tmp_path / "elsewhere"
    (tmp_path / "packed").rename(moved)
    packed = sonant.open_corpus(str(moved))
    found = read(packed)
    assert list(found) == list(expected)
    for id, (samples, rate) in expected.items():
        np.testing.assert_array_equal(found[id][0], samples, err_msg=id)
        assert found[id][1] == rate
    assert all(str(moved) in one.audio for one in packed)


def test_packing_changes_neither_rows_nor_fingerprint(varied, prepared, tmp_path):
    table = varied.table()
    prepared(table, "addressed")
    prepared(table, "packed", pack=True)
    addressed, packed = (sonant.open_corpus(str(tmp_path / name)) for name in ("addressed", "packed"))
    assert addressed.description["fingerprint"] == packed.description["fingerprint"]
    same = [name for name in addressed.table.column_names if name not in ("audio", "start", "channel")]
    assert packed.table.select(same) == addressed.table.select(same)


def test_integers_are_packed_as_flac_and_floats_as_wav(varied, prepared, tmp_path):
    prepared(varied.table(), pack=True)
    (shard,) = (tmp_path / "corpus" / "audio").glob("*.tar")
    with tarfile.open(shard) as archive:
        kinds = dict(name.rpartition(".")[::2] for name in archive.getnames())
    assert kinds["PCM_16"] == kinds["PCM_24"] == kinds["PCM_U8"] == kinds["ULAW"] == kinds["a0"] == "flac"
    assert kinds["FLOAT"] == "wav"
    assert not any("/" in name or ":" in name for name in kinds)  # safe to unpack anywhere


def test_packing_again_writes_nothing_and_packing_anew_leaves_nothing_behind(varied, prepared, tmp_path):
    table = varied.table()
    prepared(table, pack=True)
    (shard,) = (tmp_path / "corpus" / "audio").glob("*.tar")
    stamp, content = shard.stat().st_mtime_ns, shard.read_bytes()
    prepared(table, pack=True)
    assert shard.stat().st_mtime_ns == stamp

    varied.write("a0.wav", varied.speech(0.75, seed=90))
    prepared(table, pack=True)
    (other,) = (tmp_path / "corpus" / "audio").glob("*.tar")
    assert other != shard
    assert other.read_bytes() != content

    prepared(table)
    assert not list((tmp_path / "corpus" / "audio").glob("*"))
    assert read(sonant.open_corpus(str(tmp_path / "corpus")))["a0"][0].size == 6000
