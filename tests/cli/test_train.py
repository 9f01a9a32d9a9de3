"""Training on the command line: it says what it does, stops when asked, goes on by itself, and answers mistakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from sonant.cli.main import main

SETTINGS = [
    "trainer.limits.max_steps=4",
    "trainer.rhythm.validate=2",
    "trainer.rhythm.log=1",
    "trainer.threads=1",
    "validation.num_samples=0",
    "block_size=16",
    "batches.max_tokens=128",
    "texts.share={share: 0.2, by: tail}",
    'model.settings={"n_embd": 8, "n_layer": 1, "n_head": 1}',
    "tokenizer.train={kind: bpe, size: 262}",
]


def told(*settings):
    return [word for setting in settings for word in ("--set", setting)]


QUICK = told(*SETTINGS, "trainer.guard.scan=false")


@pytest.fixture
def texts(tmp_path, monkeypatch):
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "text.txt").write_text("all that glitters is not gold. " * 60)
    return str(tmp_path / "text.txt")


def test_a_training_its_evaluation_its_texts_and_a_comparison(texts, tmp_path, capsys):
    for name, rate in (("one", 0.001), ("two", 0.01)):
        assert (
            main(
                [
                    "train",
                    "language",
                    texts,
                    "--run",
                    str(tmp_path / name),
                    *QUICK,
                    *told(f"trainer.optimizer.rate={rate}"),
                ]
            )
            == 0
        )
    out = capsys.readouterr().out
    assert f"Next: sonant evaluate {tmp_path}/two/bundle" in out
    assert main(["evaluate", str(tmp_path / "one/bundle"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    results = json.loads((tmp_path / "one/eval_results.json").read_text())
    assert found["figures"]["loss"] == pytest.approx(results["eval_loss"], rel=1e-9)
    assert (
        main(
            ["generate", str(tmp_path / "one/bundle"), "--prompt", "all", "--count", "2", "--max-tokens", "5", "--json"]
        )
        == 0
    )
    assert len(json.loads(capsys.readouterr().out)) == 2
    page = str(tmp_path / "compared.html")
    assert main(["compare", str(tmp_path / "one"), str(tmp_path / "two"), "--html", page]) == 0
    out = capsys.readouterr().out
    assert "trainer.optimizer.rate" in out
    assert "less one" in out
    assert os.path.getsize(page) > 1000


def test_the_result_for_programs(texts, tmp_path, capsys):
    assert main(["train", "language", texts, "--run", str(tmp_path / "run"), "--json", "--quiet", *QUICK]) == 0
    found = capsys.readouterr()
    values = json.loads(found.out)
    assert values["is_finished"]
    assert values["step"] == 4
    assert not found.err


@pytest.mark.slow
def test_ctrl_c_saves_and_the_same_command_goes_on(texts, tmp_path):
    long = told(*SETTINGS, "trainer.guard.scan=false", "trainer.limits.max_steps=400", "trainer.rhythm.validate=0")
    command = [
        sys.executable,
        "-m",
        "sonant.cli.main",
        "train",
        "language",
        texts,
        "--run",
        str(tmp_path / "run"),
        *long,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = tmp_path / "run/metrics.jsonl"
    while not log.exists() or not log.read_text():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "stopped at step" in out
    assert "The same command goes on." in out
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "going on from step" in again.stderr
    assert "step 400" in again.stdout


@pytest.mark.slow
def test_the_largest_batches_are_tried_first_and_a_size_is_found(texts, tmp_path):
    limit = told("trainer.guard.max_memory_gb=1.1", "batches.max_tokens=64", "trainer.limits.max_steps=1")
    words = ["train", "language", texts, "--run", str(tmp_path / "run"), *told(*SETTINGS), *limit]
    done = subprocess.run(
        [sys.executable, "-m", "sonant.cli.main", *words], capture_output=True, text=True, check=True, timeout=200
    )
    assert "the largest batches fit" in done.stderr


@pytest.mark.parametrize(
    ("words", "told_in", "code"),
    [
        (["train", "langauge", "--run", "r"], "Did you mean 'language'", 2),
        (["train", "language", "--run", "r"], "nothing is given to learn from", 2),
        (["train", "language", "missing.txt", "--run", "r", "--set", "trainer.guard.scan=false"], "missing.txt", 3),
        (["train", "language", "x", "--runs", "r"], "--run", 2),
        (["train", "language", "x", "--run", "r", "--set", "trainer.optimiser.rate=1"], "optimizer", 2),
        (["train", "language", "x", "--run", "r", "--set", "trainer.precision=bf61"], "bf16", 2),
        (["train", "language", "x", "--run", "r", "--seeds", "1"], "--seeds", 2),
        (["train", "language", "x", "--run", "r", "--seeds", "3", "--resume", "s"], "--resume", 2),
        (["train", "language", "x", "--run", "r", "--config", "c.yaml"], "the recipe itself", 2),
        (["evaluate", "nowhere"], "bundle.json is missing", 3),
        (["generate", "nowhere"], "bundle.json is missing", 3),
        (["compare", "one"], "two or more", 2),
        (["compare", "one", "two"], "no run", 2),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(tmp_path, monkeypatch, capsys, words, told_in, code):
    monkeypatch.chdir(tmp_path)
    found = main(words)
    error = capsys.readouterr().err
    assert told_in in error
    assert found in (code, 3, 4)
    assert "Traceback" not in error


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_told_and_the_bundle_stays(texts, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    command = ["train", "language", texts, "--run", str(tmp_path / "run"), *QUICK, "--push-to-hub", "me/plays"]
    code = subprocess.run(
        [sys.executable, "-m", "sonant.cli.main", *command], capture_output=True, text=True, check=False, timeout=120
    )
    assert code.returncode == 4, code.stderr
    assert "me/plays" in code.stderr
    assert "Traceback" not in code.stderr
    assert (tmp_path / "run/bundle/model.safetensors").exists()
