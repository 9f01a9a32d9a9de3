"""`sonant align`: recordings with their texts, wherever both lie; what is done is left, what is bad is told."""

from __future__ import annotations

import csv
import functools
import json
from shutil import copyfileobj

import numpy as np
import pytest
import soundfile
from small_recogniser import RATE, write_recogniser

import sonant
from sonant.base import storage
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.cli.main import main
from sonant.inference.transcriber import Failure, Request, Transcriber, TranscriberConfig
from sonant.recipes.align import align_into
from sonant.recipes.texts_beside import with_texts
from sonant.recipes.transcribe import recordings

TEXTS = {"a": "The quick, brown fox", "b": "jumps over", "c/d": "A LAZY dog!"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> str:
    return write_recogniser(str(tmp_path_factory.mktemp("bundles") / "small"), "conformer")


@pytest.fixture
def talks(tmp_path, voiced):
    """Recordings with texts beside them."""
    folder = tmp_path / "talks"
    (folder / "c").mkdir(parents=True)
    for number, (name, text) in enumerate(TEXTS.items()):
        soundfile.write(folder / f"{name}.wav", voiced(3 + number, seed=number), RATE)
        (folder / f"{name}.{'lab' if name == 'b' else 'txt'}").write_text(text + "\n")
    return folder


def rows_of(path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def contents(folder) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_is_aligned_with_the_texts_beside_its_recordings(bundle, talks, tmp_path, capsys):
    assert main(["align", bundle, str(talks), "--out", str(tmp_path / "out"), "--format", "json,textgrid"]) == 0
    for name, text in TEXTS.items():
        found = json.loads((tmp_path / "out" / f"{name}.json").read_text())
        assert " ".join(word["text"] for word in found["words"]) == found["text"] == text
        times = [time for word in found["words"] for time in (word["start"], word["end"])]
        assert times == sorted(times)
        assert 0 <= times[0] <= times[-1] <= found["seconds"]
        assert found["score"] <= 0 <= min(word["confidence"] for word in found["words"])
        assert (tmp_path / "out" / f"{name}.TextGrid").exists()
    scores = [float(row["score"]) for row in rows_of(tmp_path / "out" / "scores.csv")]
    assert scores == sorted(scores)
    assert len(scores) == 3
    assert not (tmp_path / "out" / "failures.csv").exists()


@pytest.mark.parametrize("lost", [["a.json"], ["b.TextGrid", "scores.csv"], []])
def test_what_was_interrupted_ends_as_what_was_not(bundle, talks, tmp_path, lost, capsys):
    command = ["align", bundle, str(talks), "--out", str(tmp_path / "out"), "--format", "json,TextGrid"]
    assert main(command) == 0
    whole = contents(tmp_path / "out")
    for name in lost:
        (tmp_path / "out" / name).unlink()
    capsys.readouterr()
    assert main(command) == 0
    assert f": {3 if 'scores.csv' in lost else len(lost)} recordings" in capsys.readouterr().out
    assert contents(tmp_path / "out") == whole
    (tmp_path / "out" / "a.json").write_text("mine")
    assert main(command) == 0
    assert (tmp_path / "out" / "a.json").read_text() == "mine"
    assert main([*command, "--again"]) == 0
    assert contents(tmp_path / "out") == whole


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_interruption_at_any_place_loses_nothing_that_was_written(bundle, talks, tmp_path, place):
    transcriber = Transcriber.open(bundle, config=TranscriberConfig(batch_seconds=1.0))
    pairs = list(with_texts(recordings([str(talks)])))

    def interrupted():
        yield from pairs[:place]
        raise KeyboardInterrupt

    whole = align_into(transcriber, pairs, str(tmp_path / "whole"), ["json", "ctm"])
    with pytest.raises(KeyboardInterrupt):
        align_into(transcriber, interrupted(), str(tmp_path / "parts"), ["json", "ctm"])
    kept = rows_of(tmp_path / "parts" / "scores.csv")
    rest = align_into(transcriber, pairs, str(tmp_path / "parts"), ["json", "ctm"])
    assert rest.num_skipped == len(kept)
    assert rest.num_written == len(pairs) - len(kept)
    assert rest.rows == whole.rows
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_text_that_was_mended_is_aligned_anew_and_the_others_are_left(bundle, talks, tmp_path, capsys):
    command = ["align", bundle, str(talks), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    (talks / "b.lab").write_text("fox")
    assert main(command) == 0
    assert "1 recordings" in capsys.readouterr().out.splitlines()[-1]
    assert 'text = "fox"' in (tmp_path / "out" / "b.TextGrid").read_text()
    assert {row["recording"]: row["words"] for row in rows_of(tmp_path / "out" / "scores.csv")}["b"] == "1"
    (talks / "b.lab").write_text("far too much " * 99)
    assert main(command) == 3
    assert {row["recording"] for row in rows_of(tmp_path / "out" / "scores.csv")} == {"a", "c/d"}


def test_each_line_of_a_text_is_a_row_of_its_own(bundle, talks, tmp_path, capsys):
    (talks / "a.txt").write_text("The quick\n\nbrown\nfox\n")
    command = ["align", bundle, str(talks / "a.wav"), "--out", str(tmp_path / "out"), "--format", "json,srt"]
    assert main(command) == 0
    assert "line" in capsys.readouterr().out
    rows = sorted(rows_of(tmp_path / "out" / "scores.csv"), key=lambda row: row["line"])
    assert [(row["line"], row["words"]) for row in rows] == [("", "4"), ("1", "2"), ("3", "1"), ("4", "1")]
    lines = json.loads((tmp_path / "out" / "a.json").read_text())["lines"]
    assert [line["text"] for line in lines] == ["The quick", "brown", "fox"]
    assert [f"{line['score']:.3f}" for line in lines] == [row["score"] for row in rows[1:]]
    assert (tmp_path / "out" / "a.srt").read_text().count(" --> ") >= 3
    before = (tmp_path / "out" / "scores.csv").read_bytes()
    assert main(command) == 0
    assert "1 were done already" in capsys.readouterr().out
    assert (tmp_path / "out" / "scores.csv").read_bytes() == before


@pytest.mark.parametrize("table", ["", "a;b\n1;2\n", "broken"])
def test_a_table_that_somebody_changed_is_made_anew(bundle, talks, tmp_path, table, capsys):
    command = ["align", bundle, str(talks), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    where = tmp_path / "out" / "scores.csv"
    before = where.read_text()
    where.write_text(before.replace(",-", ",minus ") if table == "broken" else table)
    assert main(command) == 0
    assert where.read_text() == before


def test_what_was_transcribed_and_what_was_aligned_do_not_mix(bundle, talks, tmp_path, capsys):
    out = ["--out", str(tmp_path / "out"), "--format", "json"]
    assert main(["transcribe", bundle, str(talks), *out]) == 0
    assert main(["align", bundle, str(talks), *out]) == 2
    assert "Choose another folder" in capsys.readouterr().err
    assert main(["align", bundle, str(talks), *out, "--again"]) == 0
    assert main(["transcribe", bundle, str(talks), *out]) == 2


def test_a_bad_recording_or_text_is_a_line_of_a_table_and_the_others_go_on(bundle, talks, tmp_path, capsys):
    (talks / "broken.wav").write_bytes(b"RIFF" + bytes(60))
    (talks / "broken.txt").write_text("nothing")
    soundfile.write(talks / "silent.wav", np.zeros(100), RATE)
    (talks / "silent.txt").write_text("too long for it")
    (talks / "a.txt").unlink()
    (talks / "b.lab").write_text(" \n")
    out = tmp_path / "out"
    assert main(["align", bundle, str(talks), "--out", str(out)]) == 3
    told = {row["recording"]: row["problem"] for row in rows_of(out / "failures.csv")}
    assert set(told) == {"a", "b", "broken", "silent"}
    assert "a.txt" in told["a"]
    assert "a.lab" in told["a"]
    assert "empty" in told["b"]
    assert "frames" in told["silent"]
    assert [row["recording"] for row in rows_of(out / "scores.csv")] == ["c/d"]
    assert (out / "c" / "d.TextGrid").exists()
    for name in ("broken.wav", "silent.wav"):
        (talks / name).unlink()
    (talks / "a.txt").write_text("now")
    (talks / "b.lab").write_text("now")
    capsys.readouterr()
    assert main(["align", bundle, str(talks), "--out", str(out)]) == 0
    assert "2 recordings" in capsys.readouterr().out
    assert not (out / "failures.csv").exists()


def test_a_text_may_be_given_itself_as_a_file_or_as_a_folder_of_files(bundle, talks, tmp_path, capsys):
    (talks / "a.txt").rename(tmp_path / "said.txt")
    given = [TEXTS["a"], str(tmp_path / "said.txt")]
    (tmp_path / "texts" / "c").mkdir(parents=True)
    for name, text in TEXTS.items():
        (tmp_path / "texts" / f"{name}.txt").write_text(text)
    told = []
    for text in [*given, str(tmp_path / "texts")]:
        assert main(["align", bundle, str(talks / "a.wav"), "--text", text, "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1] == told[2]
    assert main(["align", bundle, str(talks), "--text", str(tmp_path / "texts"), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["text"] for line in lines] == list(TEXTS.values())


def test_words_are_printed_with_their_times(bundle, talks, capsys):
    assert main(["align", bundle, str(talks / "a.wav")]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("# a: 3.00 s, score -")
    assert [line.split("\t")[3] for line in lines] == TEXTS["a"].split()


def test_a_corpus_is_aligned_with_its_own_texts(bundle, talks, tmp_path, capsys):
    with open(talks / "table.csv", "w", newline="") as file:
        csv.writer(file).writerows([["path", "sentence"], ["a.wav", "Brown fox"], ["b.wav", "42"], ["c/d.wav", "dog"]])
    corpus = str(tmp_path / "corpus")
    sonant.prepare(str(talks), corpus, sonant.PrepareConfig(workers=1))
    capsys.readouterr()
    assert main(["align", bundle, corpus, "--json"]) == 3
    found = capsys.readouterr()
    assert [json.loads(line)["text"] for line in found.out.splitlines()] == ["Brown fox", "dog"]
    assert "b.wav: nothing of '42' can be written" in found.err
    assert main(["align", bundle, corpus, "--text", "other"]) == 2
    assert "--text" in capsys.readouterr().err


def test_letters_that_cannot_be_written_are_told_once(bundle, talks, capsys):
    (talks / "a.txt").write_text("the naïve 42 fox")
    (talks / "b.lab").write_text("über")
    assert main(["align", bundle, str(talks), "--json"]) == 0
    found = capsys.readouterr()
    first = json.loads(found.out.splitlines()[0])
    assert [word["text"] for word in first["words"]] == ["the", "naïve", "fox"]
    assert first["skipped"] == ["42"]
    told = [line for line in found.err.splitlines() if "cannot write" in line]
    assert len(told) == 1
    assert all(sign in told[0] for sign in ("'ï'", "'ü'", "'4'", "'2'"))


def test_a_recording_is_aligned_alone_as_among_others_and_from_samples_of_any_rate(bundle, talks, voiced, tmp_path):
    transcriber = Transcriber.open(bundle)
    pairs = [(Request(str(talks / f"{name}.wav")), text) for name, text in TEXTS.items()]
    pairs.insert(1, (Request("nowhere.wav"), "text"))
    first, missing, *others = transcriber.align_all(pairs)
    assert isinstance(missing, Failure)
    for found, (name, text) in zip([first, *others], TEXTS.items(), strict=True):
        alone = transcriber.align(str(talks / f"{name}.wav"), text)
        assert [(word.start, word.end) for word in found.words] == [(word.start, word.end) for word in alone.words]
        assert found.score == pytest.approx(alone.score, abs=1e-4)
    stereo = np.stack([voiced(3, 44100, seed=5)] * 2, axis=1)
    soundfile.write(tmp_path / "s.wav", stereo, 44100, subtype="FLOAT")
    of_samples = sonant.load(bundle).align(stereo[:, 0], TEXTS["a"], 44100)
    assert of_samples.words == transcriber.align(str(tmp_path / "s.wav"), TEXTS["a"]).words


def test_texts_that_a_pattern_takes_in_are_no_recordings(bundle, talks, capsys):
    assert main(["align", bundle, str(talks / "*.*"), "--json"]) == 0
    assert [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()] == ["a", "b"]
    assert main(["align", bundle, str(talks / "a.wav"), str(talks / "a.txt"), "--json"]) == 0
    assert main(["align", bundle, str(talks / "a.txt")]) == 2
    assert "no recording was named" in capsys.readouterr().err


@pytest.mark.slow
def test_recordings_and_texts_in_a_bucket_are_aligned_there(bundle, talks, s3_bucket, tmp_path, capsys):
    for file in [path for path in talks.rglob("*") if path.is_file()]:
        with storage.open_binary(str(file)) as content:
            write = functools.partial(copyfileobj, content)
            storage.write_whole(f"{s3_bucket}/aligning/{file.relative_to(talks)}", write)
    command = ["align", bundle, f"{s3_bucket}/aligning", "--out", f"{s3_bucket}/aligned", "--format", "ctm"]
    assert main(command) == 0
    assert main(["align", bundle, str(talks), "--out", str(tmp_path / "here"), "--format", "ctm"]) == 0
    for name in (*(f"{name}.ctm" for name in TEXTS), "scores.csv"):
        assert storage.read_bytes(f"{s3_bucket}/aligned/{name}") == (tmp_path / "here" / name).read_bytes()
    capsys.readouterr()
    assert main(command) == 0
    assert "3 were done already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--format", "srt"], "--out"),
        (["--again"], "--out"),
        (["--json", "--out", "x"], "--json"),
        (["--format", "textgird", "--out", "x"], "TextGrid"),
        (["--text", "nowhere.txt"], "nowhere.txt"),
        (["--text", "texts/nowhere"], "texts/nowhere"),
        (["--text", "one for all"], "several recordings"),
    ],
)
def test_a_mistake_is_told(bundle, talks, words, told, capsys):
    assert main(["align", bundle, str(talks), *words]) == 2
    assert told in capsys.readouterr().err


def test_a_bundle_of_another_task_is_refused(talks, tmp_path, capsys):
    write_bundle(str(tmp_path / "b"), Description(task="language", architecture="causal", config={}), {}, {})
    assert main(["align", str(tmp_path / "b"), str(talks)]) != 0
    assert "'language', 'ctc' is required" in capsys.readouterr().err
