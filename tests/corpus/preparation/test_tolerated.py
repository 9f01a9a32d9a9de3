"""Oddities of real folders that are understood as they are meant, from the table to the samples."""

from __future__ import annotations

import struct
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
import soundfile

import sonant
from sonant.audio.waveform import read_waveform
from sonant.corpus.sources.options import SourceOptions


@pytest.fixture
def corpus_of(prepared, tmp_path):
    """Prepares and opens."""

    def make(source: str, /, **fields):
        prepared(source, **fields)
        return sonant.open_corpus(str(tmp_path / "corpus"))

    return make


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_tables_of_any_encoding(lay, corpus_of, encoding):
    laid = lay(4)
    laid.rows[2] |= {"text": "ça va, naïf ?", "speaker": "Zoë"}
    corpus = corpus_of(laid.table(encoding=encoding))
    assert corpus[2].text == "ça va, naïf ?"
    assert corpus[2].speaker == "Zoë"
    if encoding == "cp1252":
        assert corpus.description["warnings"]["guessed-encoding"] == 1


def test_semicolons_and_decimal_commas(lay, corpus_of):
    laid = lay(3)
    for row, said in zip(laid.rows, ("go on", "so", "no"), strict=True):
        row |= {"start": "0,125", "end": "0,375", "score": "2,5", "text": said}
    table = laid.table(delimiter=";")
    corpus = corpus_of(table, source=SourceOptions(labels=("score",)))
    assert [(one.start, one.seconds, one.labels) for one in corpus] == [(0.125, 0.25, {"score": 2.5})] * 3


def test_quoted_newlines_and_quotes(lay, corpus_of):
    laid = lay(3)
    laid.rows[0]["text"] = 'so:\n"no", and\r\nno'
    corpus = corpus_of(laid.table())
    assert corpus[0].text == 'so: "no", and no'
    assert len(corpus) == 3


def test_ids_that_look_like_numbers_stay_as_they_are_written(lay, corpus_of):
    laid = lay(4)
    for row, id in zip(laid.rows, ("007", "7", "1e3", "0x1F"), strict=True):
        row |= {"id": id, "speaker": id}
    corpus = corpus_of(laid.table())
    assert [(one.id, one.speaker) for one in corpus] == [(id, id) for id in ("007", "7", "1e3", "0x1F")]


def test_paths_of_another_machine(lay, corpus_of):
    laid = lay(2)
    laid.add("sub/x.wav", laid.speech(seed=40))
    laid.rows[0]["audio"] = "C:\\Users\\me\\set\\a0.wav"
    laid.rows[2]["audio"] = "sub\\x.wav"
    corpus = corpus_of(laid.table())
    assert [one.audio.rpartition("/set/")[2] for one in corpus] == ["a0.wav", "a1.wav", "sub/x.wav"]


@pytest.mark.parametrize(("on_disk", "in_table"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_names_in_another_unicode_form(lay, corpus_of, on_disk, in_table):
    laid = lay(2)
    laid.add(unicodedata.normalize(on_disk, "Müller é.wav"), laid.speech(seed=40))
    laid.rows[2]["audio"] = unicodedata.normalize(in_table, "Müller é.wav")
    assert corpus_of(laid.table())[2].seconds == 0.5


def test_extensions_in_upper_case_or_wrong(lay, corpus_of):
    laid = lay(2)
    laid.write("b.WAV", laid.speech(seed=40))
    laid.add("b.wav")
    laid.write("c.wav", laid.speech(seed=41), format="FLAC")
    laid.add("c.wav")
    laid.write("d.flac", laid.speech(seed=42), format="OGG", subtype="VORBIS")
    laid.add("d.mp3")
    assert [one.seconds for one in corpus_of(laid.table())] == [0.5] * 5


def test_what_macos_leaves_beside_the_recordings(lay, corpus_of):
    laid = lay(3)
    for row in laid.rows:
        (laid.folder / f"._{row['audio']}").write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X" + bytes(90))
    (laid.folder / "__MACOSX").mkdir()
    (laid.folder / "__MACOSX" / "a0.wav").write_bytes(b"")
    (laid.folder / "._table.csv").write_bytes(b"\x00\x05\x16\x07")
    assert len(corpus_of(str(laid.folder))) == 3  # recordings alone, without a table
    laid.table()
    assert len(corpus_of(str(laid.folder))) == 3


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFF000])
def test_streamed_wav_whose_header_does_not_know_its_size(lay, corpus_of, size):
    laid = lay(2)
    path = laid.write("streamed.wav", laid.speech(seed=40), subtype="PCM_16")
    content = bytearray(path.read_bytes())
    at = content.index(b"data") + 4
    content[4:8] = content[at : at + 4] = struct.pack("<I", size)
    path.write_bytes(content)
    laid.add("streamed.wav")
    corpus = corpus_of(laid.table())
    assert corpus[2].seconds == 0.5
    assert corpus.description["warnings"] == {}


@pytest.mark.parametrize("subtype", ["PCM_24", "PCM_32", "PCM_U8", "FLOAT", "DOUBLE", "ULAW", "ALAW"])
def test_samples_of_every_kind(lay, corpus_of, subtype):
    laid = lay(2)
    speech = laid.speech(seed=40)
    laid.write("kind.wav", speech, subtype=subtype)
    laid.add("kind.wav")
    one = corpus_of(laid.table())[2]
    samples, rate = read_waveform(one.audio, start=one.start, seconds=one.seconds)
    assert rate == 8000
    assert np.corrcoef(samples, speech)[0, 1] > 0.999
    assert one.extra["peak"] == pytest.approx(np.abs(samples).max(), rel=1e-6)


def test_more_than_two_channels(lay, corpus_of, listed):
    laid = lay(2)
    channels = np.stack([laid.speech(seed=40 + number) for number in range(5)], axis=1)
    laid.write("five.wav", channels)
    laid.add("five.wav", id="mean")
    laid.add("five.wav", id="third", channel="2", text="and now another")
    for row, id in zip(laid.rows, ("a0", "a1"), strict=False):
        row["id"] = id
    corpus = corpus_of(laid.table())
    mean, third = corpus[2], corpus[3]
    assert (mean.channel, third.channel) == (None, 2)
    exact, _ = soundfile.read(laid.folder / "five.wav", dtype="float32")
    np.testing.assert_allclose(read_waveform(mean.audio)[0], exact.mean(axis=1), atol=1e-6)
    np.testing.assert_array_equal(read_waveform(third.audio, channel=2)[0], exact[:, 2])
    assert mean.extra["content"] != third.extra["content"]


def test_a_recording_that_is_replaced_while_others_are_read(lay, prepared, listed, tmp_path):
    """The table is read first, the recordings behind it: the one that changes between is heard again."""
    from sonant.corpus.preparation.run import prepare_sources
    from sonant.corpus.sources.registry import open_source

    laid = lay(40)
    source = open_source(laid.table(), SourceOptions())
    plain = source.rows

    def rows():
        for number, row in enumerate(plain()):
            if number == 39 and not replaced:
                replaced.append(laid.write("a0.wav", laid.speech(0.8, seed=77)))
            yield row

    replaced: list = []
    source.rows = rows
    config = replace(sonant.PrepareConfig(), workers=1)
    result = prepare_sources({"set": source}, str(tmp_path / "corpus"), config)
    assert replaced
    assert result.warnings == {"recording-changed": 1}
    assert result.num_decoded == 41
    assert sonant.open_corpus(str(tmp_path / "corpus"))[0].seconds == 0.8
    (found,) = listed("findings.csv")
    assert found["place"].endswith("a0.wav")


def test_a_recording_that_never_keeps_still_is_refused(lay, prepared, monkeypatch):
    from sonant.audio.recording import Recording

    laid = lay(3)
    plain = Recording.blocks

    def blocks(self, num_samples):
        yield from plain(self, num_samples)
        if self.where.endswith("a1.wav"):
            with open(self.where, "ab") as file:
                file.write(bytes(200))

    monkeypatch.setattr(Recording, "blocks", blocks)
    result = prepared(laid.table(), skip_invalid=True)
    assert result.rejected == {"recording-unstable": 1}
