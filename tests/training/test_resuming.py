"""Killed at any moment and resumed is never killed, to the last bit."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pytest
import torch
from killed_training import started
from safetensors.torch import load_file
from small_training import SequenceSource, run_small

from sonant.base.errors import SonantError, StorageError, UsageError
from sonant.checkpoints.metrics_log import read_log
from sonant.checkpoints.state import StateError, list_states, read_state

HARD = ("trainer.batches_per_step=3", "trainer.ema=0.9", "trainer.precision=bf16", "trainer.average.count=2")


def run(context, place, words, kill_event=-1) -> int:
    process = context.Process(target=started, args=(place, words, kill_event))
    process.start()
    process.join(120)
    return process.exitcode


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def lines(place) -> list[dict]:
    return [
        {name: value for name, value in line.items() if name != "clock"} for line in read_log(f"{place}/metrics.jsonl")
    ]


def assert_same_run(one: Path, other: Path) -> None:
    assert content(one / "bundle") == content(other / "bundle")
    assert lines(one) == lines(other)
    newest = [Path(list_states(str(place / "states"))[0]) for place in (one, other)]
    assert newest[0].name == newest[1].name
    for name in os.listdir(newest[0]):
        if name.endswith(".safetensors"):
            assert (newest[0] / name).read_bytes() == (newest[1] / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("plain", ["dropout=0.2"]),
        ("two workers", ["dropout=0.2", "workers=2"]),
        ("accumulated bf16 with averages", ["dropout=0.2", "workers=2", *HARD]),
        ("muon", ["dropout=0.1", "trainer.optimizer.kind=muon", "trainer.batches_per_step=2", "trainer.ema=0.5"]),
    ],
)
def test_a_run_killed_at_any_moment_ends_as_one_that_never_was(tmp_path, processes, name, words):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(processes, whole, words) == 0
    num_events = int(Path(f"{whole}.events").read_text())
    draw = random.Random(name)
    kills = 0
    moments = sorted(draw.sample(range(1, num_events), 5))
    moments = [moment if n == 0 else max(1, moment - moments[n - 1]) for n, moment in enumerate(moments)]
    for moment in moments:
        if run(processes, killed, words, moment) == 0:
            break
        kills += 1
    for step in (6, 12):
        kills += run(processes, killed, [*words, f"kill_at=validate:{step}"]) == -signal.SIGKILL
    assert run(processes, killed, words) == 0
    assert kills >= 4
    assert_same_run(whole, killed)


@pytest.mark.slow
def test_every_single_moment_of_writing_survives_a_kill(tmp_path, processes):
    rhythm = ["trainer.rhythm.validate=2", "trainer.rhythm.save=3", "trainer.rhythm.log=1"]
    words = ["num_utterances=12", "trainer.limits.max_steps=6", *rhythm]
    whole = tmp_path / "whole"
    assert run(processes, whole, words) == 0
    num_events = int(Path(f"{whole}.events").read_text())
    for moment in range(1, num_events + 1, max(1, num_events // 16)):
        killed = tmp_path / f"killed-{moment}"
        assert run(processes, killed, words, moment) == -signal.SIGKILL
        assert run(processes, killed, words) == 0
        assert_same_run(whole, killed)


def test_going_on_after_a_request_to_stop_ends_as_one_run(tmp_path):
    run_small(tmp_path / "whole", "dropout=0.1")
    for steps in (5, 13):
        stopping = [f"trainer.limits.max_steps={steps}", "trainer.schedule.kind=constant", "trainer.schedule.warmup=0"]
        run_small(tmp_path / "parts", *stopping, "dropout=0.1")
    constant = ["trainer.schedule.kind=constant", "trainer.schedule.warmup=0", "dropout=0.1"]
    run_small(tmp_path / "constant", *constant, "trainer.rhythm.validate=0")
    run_small(tmp_path / "parts", *constant, "trainer.rhythm.validate=0")
    one, other = (read_state(list_states(str(tmp_path / name / "states"))[0]) for name in ("constant", "parts"))
    for name, tensor in one.tensors["weights"].items():
        assert torch.equal(tensor, other.tensors["weights"][name])


@pytest.mark.parametrize("words", [[], ["trainer.average.count=3", "trainer.limits.max_steps=25"]])
def test_a_finished_run_started_again_changes_nothing(tmp_path, words):
    first = run_small(tmp_path / "run", *words)
    before = content(tmp_path / "run")
    second = run_small(tmp_path / "run", *words)
    assert content(tmp_path / "run") == before
    assert (first.metrics, first.best_step) == (second.metrics, second.best_step)


def test_validating_every_few_steps_changes_no_weight(tmp_path):
    run_small(tmp_path / "often", "dropout=0.2", "trainer.rhythm.validate=1")
    run_small(tmp_path / "never", "dropout=0.2", "trainer.rhythm.validate=0")
    often, never = (
        load_file(tmp_path / name / "states/step-000024/weights.safetensors") for name in ("often", "never")
    )
    assert all(torch.equal(often[name], never[name]) for name in often)


@pytest.mark.parametrize("damage", ["cut", "flipped", "missing", "description"])
def test_a_damaged_state_is_left_alone_and_the_older_one_used(tmp_path, capsys, damage):
    run_small(tmp_path / "run", "dropout=0.1")
    whole = content(tmp_path / "run" / "bundle")
    newest = tmp_path / "run" / "states" / "step-000024"
    victim = newest / ("state.json" if damage == "description" else "weights.safetensors")
    data = victim.read_bytes()
    if damage == "missing":
        victim.unlink()
    else:
        victim.write_bytes(data[:-9] if damage in ("cut", "description") else data[:-9] + b"\x07" + data[-8:])
    with pytest.raises(StateError):
        read_state(str(newest))
    run_small(tmp_path / "run", "dropout=0.1", is_silent=False)
    told = capsys.readouterr().err
    assert "step-000024" in told
    assert "an older one is used" in told
    assert "going on from step 16" in told
    assert content(tmp_path / "run" / "bundle") == whole
    assert read_state(str(newest)).step == 24


def test_a_state_that_is_asked_for_is_gone_on_from(tmp_path, capsys):
    run_small(tmp_path / "run", "trainer.keep.last=9")
    whole = content(tmp_path / "run" / "bundle")
    run_small(tmp_path / "run", resume=str(tmp_path / "run/states/step-000008"), is_silent=False)
    told = capsys.readouterr().err
    assert "going on from step 8" in told
    assert "step-000016, step-000024" in told or "step-000024, step-000016" in told
    assert content(tmp_path / "run" / "bundle") == whole


def test_a_state_of_another_run_begins_a_new_one(tmp_path):
    run_small(tmp_path / "one", "trainer.keep.last=9")
    run_small(tmp_path / "two", resume=str(tmp_path / "one/states/step-000016"))
    assert (
        content(tmp_path / "one" / "bundle")["model.safetensors"]
        == content(tmp_path / "two" / "bundle")["model.safetensors"]
    )
    assert lines(tmp_path / "two")[0]["step"] > 16


def test_going_on_under_other_conditions_says_so_in_a_line(tmp_path, capsys):
    run_small(tmp_path / "run", "trainer.limits.max_steps=8")
    run_small(tmp_path / "run", "trainer.precision=bf16", is_silent=False)
    told = capsys.readouterr().err
    assert "trainer.limits.max_steps: 8 before, 24 now" in told
    assert "not bit-identical" in told
    assert "precision: fp32 before, bf16 now" in told


@pytest.mark.slow
def test_resuming_late_reads_no_more_batches_than_resuming_early(tmp_path):
    loads = []
    for steps in (10, 400):
        place = tmp_path / str(steps)
        run_small(place, f"trainer.limits.max_steps={steps}", "trainer.rhythm.validate=0", "trainer.rhythm.save=0")
        before = SequenceSource.num_loaded
        run_small(place, f"trainer.limits.max_steps={steps + 3}", "trainer.rhythm.validate=0")
        loads.append(SequenceSource.num_loaded - before)
    assert loads[0] == loads[1] <= 4


def test_two_processes_may_not_train_in_one_folder(tmp_path):
    from sonant.training.run_folder import RunFolder

    with RunFolder(str(tmp_path / "run")).held(), pytest.raises(UsageError, match="another process is training"):
        run_small(tmp_path / "run")


def test_a_folder_that_cannot_be_written_is_told_before_training(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(StorageError, match="run"):
        run_small(tmp_path / "run")


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_older_state_stays(tmp_path):
    import subprocess

    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk can only be made by root")
    try:
        run_small(place / "run", "trainer.limits.max_steps=8")
        whole = list_states(str(place / "run/states"))[0]
        before = content(Path(whole))
        (place / "filler").write_bytes(bytes(max(0, os.statvfs(place).f_bavail * os.statvfs(place).f_frsize - 6000)))
        with pytest.raises(StorageError, match=r"full|space"):
            run_small(place / "run")
        assert content(Path(whole)) == before
        (place / "filler").unlink()
        run_small(place / "run")
        run_small(tmp_path / "whole", "trainer.limits.max_steps=8")
        run_small(tmp_path / "whole")
        assert_same_run(place / "run", tmp_path / "whole")
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.slow
def test_a_signal_ends_the_step_saves_and_goes_on_later(tmp_path, processes):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    words = ["trainer.limits.max_steps=60", "trainer.rhythm.log=1", "trainer.rhythm.save=0"]
    assert run(processes, whole, words) == 0
    process = processes.Process(target=started, args=(stopped, [*words, "seconds_per_step=0.02"]))
    process.start()
    while not (stopped / "metrics.jsonl").exists() or len(read_log(str(stopped / "metrics.jsonl"))) < 5:
        assert process.is_alive()
    os.kill(process.pid, signal.SIGTERM)
    process.join(60)
    assert process.exitcode == 0
    assert json.loads((stopped / "train_results.json").read_text())["train_reason"] == "SIGTERM was received"
    assert not json.loads((stopped / "train_results.json").read_text())["is_finished"]
    assert run(processes, stopped, words) == 0
    assert_same_run(whole, stopped)


def test_a_misnamed_figure_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(SonantError, match="loss"):
        run_small(tmp_path / "run", "trainer.best.figure=los")
