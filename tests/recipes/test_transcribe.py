"""`sonant transcribe`: everything that people do to recordings and folders ends in a right answer or a clear word."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from small_recogniser import RATE, write_recogniser

import sonant
from sonant.base import storage
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.checkpoints.tensors import read_tensors, write_tensors
from sonant.cli.main import main

NUM = 6


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> str:
    return write_recogniser(str(tmp_path_factory.mktemp("bundles") / "small"), "conformer")


@pytest.fixture(scope="module")
def talks(tmp_path_factory, voiced) -> Path:
    """Recordings in two folders, one of them broken."""
    place = tmp_path_factory.mktemp("talks")
    (place / "later").mkdir()
    for number in range(NUM):
        soundfile.write(
            place / "later"[: 5 * (number % 2)] / f"{number}.wav", voiced(0.7 + 0.3 * number, seed=number), RATE
        )
    (place / "broken.wav").write_bytes(b"RIFF" + bytes(60))
    return place


@pytest.fixture
def odd(tmp_path, voiced) -> Path:
    """What people have instead of recordings."""
    speech = voiced(2.0, seed=1)
    (tmp_path / "text.wav").write_text("minutes of the meeting")
    (tmp_path / "empty.wav").write_bytes(b"")
    soundfile.write(tmp_path / "none.wav", np.zeros(0), RATE)
    soundfile.write(tmp_path / "one.wav", np.zeros(1), RATE)
    soundfile.write(tmp_path / "silent.wav", np.zeros(RATE), RATE)
    soundfile.write(tmp_path / "speech.flac", speech, RATE)
    content = (tmp_path / "speech.flac").read_bytes()
    (tmp_path / "cut.flac").write_bytes(content[: len(content) // 2])
    soundfile.write(tmp_path / "speech.wav", speech, RATE)
    (tmp_path / "cut.wav").write_bytes((tmp_path / "speech.wav").read_bytes()[:20_000])
    soundfile.write(tmp_path / "numberless.wav", np.full(RATE, np.nan), RATE, subtype="FLOAT")
    soundfile.write(tmp_path / "stereo.wav", np.stack([speech, 0 * speech], axis=1), RATE)
    return tmp_path


def files_of(folder) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("text.wav", "this is text, not audio"),
        ("empty.wav", "the file is empty"),
        ("none.wav", "nothing was recorded"),
        ("cut.flac", "cut short"),
        ("cut.wav", "it is cut short: its header promises 2.00 s"),
        ("numberless.wav", "no numbers (NaN or infinite) 0.00 s from its beginning"),
        ("nowhere.wav", "nothing is there"),
    ],
)
def test_what_is_no_recording_is_told_and_the_others_go_on(small, odd, name, told, capsys):
    assert main(["transcribe", small, str(odd / name), str(odd / "speech.wav")]) == 3
    out, err = capsys.readouterr()
    assert told in err
    assert str(odd / name) in err
    assert out.startswith("speech\t")


@pytest.mark.parametrize("name", ["one.wav", "silent.wav"])
def test_what_says_nothing_has_an_empty_text(small, odd, name, capsys):
    assert main(["transcribe", small, str(odd / name)]) == 0
    assert capsys.readouterr().out == "\n"


def test_one_of_several_channels_is_heard(small, odd, capsys):
    texts = []
    for words in (["speech.wav"], ["stereo.wav", "--channel", "0"], ["stereo.wav", "--channel", "1"]):
        assert main(["transcribe", small, str(odd / words[0]), *words[1:]]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[2] == "\n"
    assert main(["transcribe", small, str(odd / "stereo.wav"), "--channel", "2"]) == 3
    assert "channels 0 to 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--num-best", "3"], 2, "--num-best: one answer is all that there is without a search. Search: --beam 10"),
        (["--num-best", "0"], 2, "--num-best: 0 is not between"),
        (["--beam", "0"], 2, "--beam: 'beam.width': 0 is not between"),
        (["--window", "0.1"], 2, "--window: 0.1 is not between"),
        (["--pause", "3"], 2, "--pause: it has no effect without --vad"),
        (["--vad", "energy", "--pause", "99"], 2, "--pause: 99 is not between"),
        (["--vad", "enrgy"], 2, "Did you mean 'energy'?"),
        (["--precision", "bf8"], 2, "Did you mean 'bf16'?"),
        (["--device", "gpu"], 2, "'gpu' is not known. Choose cpu, cuda"),
        (["--engine", "rya"], 2, "Did you mean 'ray'?"),
        (["--workers", "2"], 2, "--workers: it has no effect without --engine ray"),
        (["--engine", "ray", "--workers", "0"], 2, "--workers: 0 was given, at least 1 is needed"),
        (["--split", "test"], 2, "is no corpus"),
        (["--bem", "3"], 2, "Did you mean '--beam'?"),
        (["--hot-word", "zürich"], 3, "'zürich' cannot be written"),
        (["--json", "--out", "somewhere"], 2, "Write --format json"),
        (["--ngram", "README.md"], 3, "README.md"),
    ],
)
def test_a_command_that_makes_no_sense_is_told(small, odd, words, code, told, capsys):
    assert main(["transcribe", small, str(odd / "speech.wav"), *words]) == code
    assert told in capsys.readouterr().err


@pytest.mark.skipif("__import__('torch').cuda.is_available()", reason="there is one")
def test_a_device_that_is_not_there_is_told(small, odd, capsys):
    assert main(["transcribe", small, str(odd / "speech.wav"), "--device", "cuda"]) == 2
    assert "'cuda' was asked for, but none is there" in capsys.readouterr().err


def test_what_is_no_bundle_is_told(small, odd, tmp_path, capsys):
    speech, partial, other = str(odd / "speech.wav"), str(tmp_path / "partial"), str(tmp_path / "other")
    shutil.copytree(small, partial)
    os.unlink(f"{partial}/model.safetensors")
    write_bundle(other, Description(task="language", architecture="causal", config={}), {}, {})
    for place, told in (
        (str(tmp_path / "nowhere"), "bundle.json is missing"),
        (speech, "this is a file, a bundle is a folder"),
        (partial, "this bundle is not whole: model.safetensors is missing"),
        (other, "trained for 'language'"),
    ):
        assert main(["transcribe", place, speech]) == 3, place
        assert told in capsys.readouterr().err


def test_a_place_that_cannot_be_written_to_is_told_before_anything_is_heard(small, odd, capsys):
    speech = str(odd / "speech.wav")
    assert main(["transcribe", small, speech, "--out", str(odd / "text.wav")]) == 2
    assert "is a file, a folder is needed" in capsys.readouterr().err
    assert main(["transcribe", small, speech, "--out", str(odd / "text.wav" / "in")]) == 4
    assert str(odd / "text.wav" / "in") in capsys.readouterr().err


def test_texts_of_another_recogniser_or_search_are_not_mixed(small, talks, tmp_path, capsys):
    command = ["transcribe", small, str(talks / "0.wav"), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert main([*command, "--beam", "4"]) == 2
    assert "made with decoding = the best symbol of each frame" in capsys.readouterr().err
    assert main([*command, "--beam", "4", "--again"]) == 0
    assert main([*command, "--beam", "4"]) == 0
    assert "1 were done already" in capsys.readouterr().out
    other = write_recogniser(str(tmp_path / "other"), "wav2vec2")
    assert main(["transcribe", other, *command[2:], "--beam", "4"]) == 2
    assert "made with recogniser = step 0" in capsys.readouterr().err


def test_texts_of_other_weights_or_of_another_lexicon_under_the_same_name_are_not_mixed(small, talks, tmp_path, capsys):
    bundle, lexicon = tmp_path / "bundle", tmp_path / "words.txt"
    shutil.copytree(small, bundle)
    lexicon.write_text("the\nfox\n")
    command = [
        "transcribe",
        str(bundle),
        str(talks / "0.wav"),
        "--out",
        str(tmp_path / "out"),
        "--lexicon",
        str(lexicon),
    ]
    assert main(command) == main(command) == 0
    lexicon.write_text("the\ndog\n")
    assert main(command) == 2
    assert "made with decoding = " in capsys.readouterr().err
    lexicon.write_text("the\nfox\n")
    weights = read_tensors(str(bundle / "model.safetensors"))
    write_tensors(str(bundle / "model.safetensors"), {name: 2 * tensor for name, tensor in weights.items()})
    assert main(command) == 2
    assert "made with recogniser = step 0" in capsys.readouterr().err


def test_a_folder_keeps_its_tree_and_its_failures_are_tried_again(small, talks, tmp_path, voiced, capsys):
    place = tmp_path / "talks"
    shutil.copytree(talks, place)
    command = ["transcribe", small, str(place), "--out", str(tmp_path / "out"), "--format", "txt,ctm"]
    assert main(command) == 3
    assert "6 recordings, 0:0" in capsys.readouterr().out
    assert {"later/1.txt", "later/1.ctm", "0.txt", "failures.csv"} <= files_of(tmp_path / "out").keys()
    assert (tmp_path / "out" / "later" / "5.ctm").read_text().startswith("later/5 1 ")
    soundfile.write(place / "broken.wav", voiced(1.0), RATE)
    assert main(command) == 0
    assert "1 recordings" in capsys.readouterr().out
    assert "failures.csv" not in files_of(tmp_path / "out")


def test_every_word_is_of_the_lexicon(small, talks, tmp_path, capsys):
    def words_of(*options: str) -> set[str]:
        assert main(["transcribe", small, str(talks / "4.wav"), *options]) == 0
        return set(capsys.readouterr().out.split())

    free = words_of("--beam", "50")
    lexicon = {word[:2] for word in free} | {word[2:4] for word in free}
    sounds = "".join(f"{word.upper()}\tAH {word}\n\n" for word in lexicon)  # as in a dictionary of sounds
    (tmp_path / "words.txt").write_text(sounds, "utf-8")
    found = words_of("--beam", "50", "--lexicon", str(tmp_path / "words.txt"))
    assert not free <= lexicon
    assert found
    assert found <= lexicon


@pytest.mark.parametrize(
    ("content", "told"),
    [("fox\nlazy\n\nnaïve\n", "words.txt:4: 'naïve' cannot be written"), ("\n \n", "no word stands in it")],
)
def test_a_lexicon_that_cannot_be_used_is_told(small, odd, tmp_path, content, told, capsys):
    (tmp_path / "words.txt").write_text(content, "utf-8")
    assert main(["transcribe", small, str(odd / "speech.wav"), "--lexicon", str(tmp_path / "words.txt")]) == 3
    assert told in capsys.readouterr().err


_KILLED = """
import os, signal, sys
from sonant.cli.main import main
count = 0
def look(event, arguments):
    global count
    if event == "os.rename" and "/out/" in str(arguments[1]):
        count += 1
        if count == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(look)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("event", [1, 3, 8, 14])
def test_a_run_that_was_killed_goes_on_to_the_same_files(small, talks, tmp_path, event):
    def command(name):
        return ["transcribe", small, str(talks), "--out", str(tmp_path / name / "out"), "--format", "txt,json"]

    assert main(command("whole")) == 3
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(event), *command("killed")], check=False)
    assert killed.returncode == -9
    assert main(command("killed")) == 3
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")
    rows = list(csv.DictReader((tmp_path / "killed" / "out" / "failures.csv").open()))
    assert [Path(row["recording"]).name for row in rows] == ["broken.wav"]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_ray_writes_the_same_files(small, talks, tmp_path):
    """In a process of its own, because a cluster stays with the process that started it."""
    for engine in (["local"], ["ray", "--workers", "2"]):
        command = [sys.executable, "-m", "sonant.cli.main", "transcribe", small, str(talks), "--engine", *engine]
        command += ["--out", str(tmp_path / engine[0]), "--format", "txt,srt", "--beam", "4"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 3, done.stderr
        assert "broken.wav" in done.stderr
        assert f"{NUM} recordings" in done.stdout
    assert files_of(tmp_path / "local") == files_of(tmp_path / "ray")


_IN_A_CLUSTER = """
import os, sys, ray
from ray.cluster_utils import Cluster
from sonant.cli.main import main

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
os.environ["RAY_ADDRESS"] = cluster.address
codes = [main([*sys.argv[1:], "--workers", "3"]), main([*sys.argv[1:], "--device", "cuda"])]
ray.shutdown()
cluster.shutdown()
sys.exit(0 if codes == [3, 2] else 1)
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_a_cluster_that_is_there_is_joined_with_as_many_workers_as_it_has_room_for(small, talks, tmp_path):
    out = str(tmp_path / "out")
    command = [sys.executable, "-c", _IN_A_CLUSTER, "transcribe", small, str(talks), "--engine", "ray", "--out", out]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert f"{NUM} recordings" in done.stdout
    assert "--device: 'cuda' was asked for, but no machine of the Ray cluster has one" in done.stderr


def test_ray_that_is_not_installed_is_asked_for(small, talks, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["transcribe", small, str(talks / "0.wav"), "--engine", "ray"]) == 5
    assert "pip install 'sonant[ray]'" in capsys.readouterr().err


@pytest.mark.slow
def test_everything_may_lie_in_a_bucket(small, talks, bucket, tmp_path, capsys):
    for name, content in files_of(small).items():
        storage.write_whole(f"{bucket}/bundle/{name}", lambda file, content=content: file.write(content))
    for name, content in files_of(talks).items():
        storage.write_whole(f"{bucket}/talks/{name}", lambda file, content=content: file.write(content))
    assert main(["transcribe", small, str(talks), "--out", str(tmp_path / "out")]) == 3
    command = ["transcribe", f"{bucket}/bundle", f"{bucket}/talks", "--out", f"{bucket}/texts"]
    assert main(command) == 3
    for name, content in files_of(tmp_path / "out").items():
        if name.endswith(".txt"):
            assert storage.read_bytes(f"{bucket}/texts/{name}") == content
    assert b"broken.wav" in storage.read_bytes(f"{bucket}/texts/failures.csv")
    capsys.readouterr()
    assert main(command) == 3
    assert f"0 recordings; {NUM} were done already" in capsys.readouterr().out
    assert main(["transcribe", f"{bucket}/bundle", f"{bucket}/talks/later/*.wav", "--json"]) == 0
    assert [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()] == ["1", "3", "5"]


def test_utterances_of_a_corpus_carry_their_ids(small, talks, tmp_path, capsys):
    corpus = str(tmp_path / "corpus")
    sonant.prepare(str(talks), corpus, sonant.PrepareConfig(workers=1, skip_invalid=True))
    assert main(["transcribe", small, corpus, "--json"]) == 0
    names = [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert sorted(names) == sorted(sonant.open_corpus(corpus).column("id"))
