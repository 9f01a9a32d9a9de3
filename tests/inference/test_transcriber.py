"""A recogniser at work: the same text whatever stands beside a recording, however long it is and wherever it lies."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import soundfile
import torch
from small_recogniser import RATE, write_recogniser

import sonant
from sonant.base.errors import SonantError, UsageError
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.cli.main import main
from sonant.decoding.decoder import SearchConfig
from sonant.decoding.prefix_beam import BeamConfig
from sonant.inference.transcriber import Failure, Request, Transcriber, TranscriberConfig
from sonant.inference.transcripts import Transcript, Word, as_ctm, as_json, as_srt, as_txt, as_vtt, captions


@pytest.fixture(scope="module", params=["conformer", "wav2vec2"])
def bundle(request, tmp_path_factory) -> str:
    return write_recogniser(str(tmp_path_factory.mktemp("bundles") / request.param), request.param)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> str:
    return write_recogniser(str(tmp_path_factory.mktemp("bundles") / "small"), "conformer")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, voiced):
    place = tmp_path_factory.mktemp("recordings")
    for number in range(5):
        soundfile.write(place / f"{number}.wav", voiced(0.6 + 0.5 * number, seed=number), RATE)
    (place / "broken.wav").write_bytes(b"RIFF" + bytes(60))
    (place / "notes.txt").write_text("nothing to hear")
    return place


def test_recordings_without_anything_to_hear_are_answered_as_they_come(small, tmp_path):
    taken: list[str] = []

    def requests():
        for number in range(2000):
            taken.append(str(tmp_path / f"{number}.wav"))
            yield Request(taken[-1])

    for number, found in enumerate(Transcriber.open(small).transcribe_all(requests())):
        assert isinstance(found, Failure)
        assert found.audio == taken[number]
        assert len(taken) - number <= 256
    assert number == 1999


def test_a_recording_has_the_same_text_alone_and_among_others(bundle, folder):
    transcriber = Transcriber.open(bundle)
    places = [str(folder / f"{number}.wav") for number in range(5)]
    together = list(transcriber.transcribe_all(Request(place) for place in places))
    alone = [transcriber.transcribe(place) for place in places]
    assert [one.text for one in together] == [one.text for one in alone]
    assert any(one.text for one in alone)
    assert [one.audio for one in together] == places


def test_a_bad_recording_is_a_failure_in_its_place_and_the_others_go_on(small, folder):
    transcriber = Transcriber.open(small)
    places = [str(folder / name) for name in ("0.wav", "broken.wav", "nowhere.wav", "1.wav")]
    found = list(transcriber.transcribe_all(Request(place) for place in places))
    assert [isinstance(one, Failure) for one in found] == [False, True, True, False]
    assert "nowhere.wav" in str(found[2].error)


def test_a_long_recording_in_windows_says_what_it_says_as_a_whole(voiced, tmp_path):
    """With a model whose frames see little around them, windows change nothing at all."""
    bundle = write_recogniser(str(tmp_path / "b"), "conformer")
    model = Transcriber.open(bundle)
    for layer in model.model.layers:
        torch.nn.init.zeros_(layer.attention.out.weight)
        torch.nn.init.zeros_(layer.attention.out.bias)
    model.model.cmvn = _Unchanged()
    samples = voiced(9.3, seed=4)
    windows = TranscriberConfig(window_seconds=4.0, context_seconds=1.0)
    whole = Transcriber(model.model, model.spelling).score(samples, RATE).log_probs
    parts = Transcriber(model.model, model.spelling, windows).score(samples, RATE).log_probs
    np.testing.assert_allclose(parts, whole, atol=1e-3)
    assert len(whole) == model.model.num_frames(len(samples))


class _Unchanged(torch.nn.Module):
    def forward(self, features, lengths):
        return features - 10


def test_samples_of_any_rate_are_heard_as_the_file_is(small, voiced, tmp_path):
    transcriber = Transcriber.open(small)
    samples = voiced(1.5, 44100, seed=2)
    soundfile.write(tmp_path / "a.wav", samples, 44100, subtype="FLOAT")
    assert transcriber.transcribe(samples, 44100).text == transcriber.transcribe(str(tmp_path / "a.wav")).text


@pytest.mark.parametrize("num_samples", [0, 1, 399])
def test_what_is_too_short_to_say_anything_says_nothing(bundle, num_samples):
    found = Transcriber.open(bundle).transcribe(np.zeros(num_samples, np.float32), RATE)
    assert (found.text, found.words) == ("", ())


@pytest.mark.parametrize("sound", ["silence", "noise", "loud"])
def test_silence_and_noise_have_an_answer(bundle, sound):
    rng = np.random.default_rng(0)
    samples = {"silence": np.zeros(RATE), "noise": rng.standard_normal(10 * RATE) * 0.1, "loud": np.ones(RATE) * 9}
    found = Transcriber.open(bundle).transcribe(samples[sound].astype(np.float32), RATE)
    assert 0 <= found.confidence <= 1


def test_words_stand_in_order_within_the_recording(bundle, folder):
    found = Transcriber.open(bundle).transcribe(str(folder / "4.wav"))
    times = [time for word in found.words for time in (word.start, word.end)]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= found.seconds
    assert " ".join(word.text for word in found.words) == " ".join(found.text.split())


def test_a_search_gives_as_many_answers_as_are_asked_for(small, folder):
    searched = SearchConfig(beam=BeamConfig(width=8))
    found = Transcriber.open(small, config=TranscriberConfig(num_best=3), decoding=searched).transcribe(
        str(folder / "2.wav")
    )
    assert found.alternatives[0].text == found.text
    assert len({one.text for one in found.alternatives}) == 3
    scores = [one.score for one in found.alternatives]
    assert scores == sorted(scores, reverse=True)


def test_sonant_load_transcribes(small, folder):
    assert sonant.load(small).transcribe(str(folder / "2.wav")).seconds == pytest.approx(1.6, abs=1e-3)


def test_a_bundle_of_another_task_is_refused(tmp_path):
    write_bundle(str(tmp_path / "b"), Description(task="language", architecture="causal", config={}), {}, {})
    with pytest.raises(SonantError, match="'language', 'ctc' is required"):
        Transcriber.open(str(tmp_path / "b"))


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"window_seconds": 4.0, "context_seconds": 2.0}, "nothing"), ({"num_best": 0}, "1")],
)
def test_settings_without_sense_are_refused(settings, told):
    with pytest.raises(UsageError, match=told):
        TranscriberConfig(**settings)


SAID = Transcript(
    "talks/a b.wav",
    12.0,
    "so it is done",
    0.9,
    (
        Word("so", 0.2, 0.4, 0.91),
        Word("it", 0.5, 0.6, 0.8),
        Word("is", 3.0, 3.2, 0.7),
        Word("done", 3661.5, 3662.0, 1.0),
    ),
)


def test_captions_break_at_pauses():
    assert [(one.start, one.end, one.text) for one in captions(SAID)] == [
        (0.2, 1.2, "so it"),
        (3.0, 4.0, "is"),
        (3661.5, 3662.0, "done"),
    ]


def test_every_format_is_as_its_readers_want_it():
    assert as_txt(SAID) == "so it is done\n"
    assert as_srt(SAID).startswith("1\n00:00:00,200 --> 00:00:01,200\nso it\n\n2\n")
    assert "01:01:01,500 --> 01:01:02,000" in as_srt(SAID)
    assert as_vtt(SAID).startswith("WEBVTT\n\n00:00:00.200 --> 00:00:01.200\nso it\n\n")
    assert as_ctm(SAID).splitlines()[0] == "a_b.wav 1 0.200 0.200 so 0.910"
    values = json.loads(as_json(SAID))
    assert values["words"][1] == {"text": "it", "start": 0.5, "end": 0.6, "confidence": 0.8}
    assert "alternatives" not in values


def test_captions_of_nothing_are_empty():
    silent = Transcript("a.wav", 1.0, "", 1.0, ())
    assert (as_srt(silent), as_ctm(silent), as_txt(silent)) == ("", "", "\n")
    assert as_vtt(silent) == "WEBVTT\n"


def test_a_folder_is_written_file_by_file_and_gone_on_with(small, folder, tmp_path, capsys):
    out = tmp_path / "texts"
    command = ["transcribe", small, str(folder), "--out", str(out), "--format", "txt,json"]
    assert main(command) == 3  # one of them is broken
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == sorted(
        ["failures.csv", *(f"{number}.{kind}" for number in range(5) for kind in ("txt", "json"))]
    )
    with open(out / "failures.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["recording"].rsplit("/")[-1] for row in rows] == ["broken.wav"]
    before = (out / "3.txt").read_text()
    (out / "2.txt").unlink()
    (out / "3.txt").write_text("mine")
    capsys.readouterr()
    assert main(command) == 3
    assert "1 recordings" in capsys.readouterr().out
    assert (out / "2.txt").exists()
    assert (out / "3.txt").read_text() == "mine"
    assert main([*command, "--again"]) == 3
    assert (out / "3.txt").read_text() == before


def test_one_recording_is_printed_alone_and_several_by_name(small, folder, capsys):
    assert main(["transcribe", small, str(folder / "2.wav")]) == 0
    alone = capsys.readouterr().out
    assert "\t" not in alone
    assert main(["transcribe", small, str(folder / "[12].wav")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("\t")[0] for line in lines] == ["1", "2"]
    assert lines[1].partition("\t")[2] == alone.strip("\n")
    assert main(["transcribe", small, str(folder / "2.wav"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == alone.strip("\n")


def test_a_corpus_is_written_by_the_names_of_its_utterances(small, folder, tmp_path):
    (folder / "broken.wav").unlink(missing_ok=True)
    corpus = str(tmp_path / "corpus")
    sonant.prepare(str(folder), corpus, sonant.PrepareConfig(workers=1))
    assert main(["transcribe", small, corpus, "--out", str(tmp_path / "texts"), "--format", "ctm"]) == 0
    ids = {f"{id}.ctm" for id in sonant.open_corpus(corpus).column("id")}
    assert {path.name for path in (tmp_path / "texts").rglob("*.ctm")} == {name.rsplit("/")[-1] for name in ids}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--format", "srt"], "--out"),
        (["--again"], "--out"),
        (["--format", "str", "--out", "x"], "srt"),
        (["--num-best", "3"], "beam"),
        (["--greedy", "--beam", "3"], "Leave one out"),
        (["--set", "guide.word_bonus=2"], "none are known"),
        (["--set", "beam.widht=2"], "Did you mean 'width'"),
        (["--rescorer", "nowhere"], "not a bundle"),
        (["--ngram", "nowhere.arpa"], "nowhere.arpa"),
    ],
)
def test_a_mistake_is_told(small, folder, words, told, capsys):
    assert main(["transcribe", small, str(folder / "1.wav"), *words]) != 0
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("place", ["empty", "*.wav"])
def test_a_place_without_recordings_is_told(small, tmp_path, place, capsys):
    (tmp_path / "empty").mkdir()
    assert main(["transcribe", small, str(tmp_path / place)]) == 2
    assert str(tmp_path / place) in capsys.readouterr().err
