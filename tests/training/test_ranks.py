"""Several ranks learn what one would from the same batches, whoever of them is short of one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import small_training
import torch
from killed_training import started
from safetensors.torch import load_file
from small_training import run_small

from sonant.checkpoints.metrics_log import read_log
from sonant.checkpoints.state import list_states

pytestmark = pytest.mark.slow

SHARDED = "trainer.sharded=true"


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def run_ranks(context, world, place, *words) -> list[int]:
    """A training on so many ranks; gives their exit codes."""
    return ended(start_ranks(context, world, place, *words))


def start_ranks(context, world, place, *words):
    shared = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    shared |= {"LOCAL_WORLD_SIZE": str(world)}
    found = []
    for rank in range(world):
        mine = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        found.append(context.Process(target=started, args=(place, list(words), -1, mine)))
        found[-1].start()
    return found


def ended(found) -> list[int]:
    codes = []
    for process in found:
        process.join(120 if not any(codes) else 5)
        if process.exitcode is None:  # it waits for one that was killed
            process.kill()
            process.join()
        codes.append(process.exitcode)
    return codes


def weights(place: Path, step: int) -> dict[str, torch.Tensor]:
    found = load_file(place / f"states/step-{step:06d}/weights.safetensors")
    found.pop("seen")  # batches that one rank saw
    return found


def assert_close(one, other, tolerance=1e-5):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, other[name], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("world", "extra"), [(2, ()), (3, ()), (2, (SHARDED,))])
def test_ranks_learn_what_one_learns_from_the_same_batches(tmp_path, processes, world, extra):
    steps = ["trainer.limits.max_steps=3", "trainer.rhythm.save=3", "trainer.rhythm.log=3"]
    assert run_ranks(processes, world, tmp_path / "ranks", *steps, *extra) == [0] * world
    run_small(tmp_path / "one", *steps, f"trainer.batches_per_step={world}")
    assert_close(weights(tmp_path / "ranks", 3), weights(tmp_path / "one", 3))
    [of_ranks, of_one] = [
        next(line for line in read_log(f"{tmp_path}/{place}/metrics.jsonl") if line["kind"] == "train")
        for place in ("ranks", "one")
    ]
    figures = ["loss", *(name for name in of_one if name.startswith("gradient_norm"))]
    assert "gradient_norm/layers" in figures
    for name in figures:
        assert of_ranks[name] == pytest.approx(of_one[name], rel=1e-5), name


@pytest.mark.parametrize(
    ("world", "extra"),
    [
        (2, ("dropout=0.1", "workers=2", "trainer.batches_per_step=2")),
        (3, ("dropout=0.1", "trainer.precision=bf16", "trainer.ema=0.9")),
        (2, (SHARDED, "trainer.ema=0.9")),
    ],
)
def test_ranks_that_were_killed_end_as_ranks_that_were_not(tmp_path, processes, world, extra):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run_ranks(processes, world, whole, *extra) == [0] * world
    codes = run_ranks(processes, world, killed, *extra, "kill_at=validate:12")
    assert codes == [-signal.SIGKILL] * world
    assert run_ranks(processes, world, killed, *extra) == [0] * world
    for step in (16, 24):
        one, other = weights(whole, step), weights(killed, step)
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert (whole / "bundle/model.safetensors").read_bytes() == (killed / "bundle/model.safetensors").read_bytes()
    lines = [
        [{key: value for key, value in line.items() if key != "clock"} for line in read_log(f"{place}/metrics.jsonl")]
        for place in (whole, killed)
    ]
    assert lines[0] == lines[1]


def test_sharded_weights_learn_what_whole_ones_learn(tmp_path, processes):
    assert run_ranks(processes, 2, tmp_path / "whole") == [0, 0]
    assert run_ranks(processes, 2, tmp_path / "sharded", SHARDED) == [0, 0]
    assert_close(weights(tmp_path / "whole", 24), weights(tmp_path / "sharded", 24), 1e-4)


def test_a_validation_may_need_one_rank_of_sharded_weights_alone(tmp_path, processes):
    assert run_ranks(processes, 2, tmp_path / "alone", SHARDED, "validates_alone=true") == [0, 0]
    assert run_ranks(processes, 2, tmp_path / "both", SHARDED) == [0, 0]
    one, other = weights(tmp_path / "alone", 24), weights(tmp_path / "both", 24)
    assert all(torch.equal(one[name], other[name]) for name in one)
    losses = [
        [line["loss"] for line in read_log(f"{tmp_path}/{name}/metrics.jsonl") if line["kind"] == "validation"]
        for name in ("alone", "both")
    ]
    assert losses[0] == losses[1]


def test_a_request_to_stop_one_rank_stops_all_after_the_same_step(tmp_path, processes):
    words = ["trainer.limits.max_steps=400", "seconds_per_step=0.02", "trainer.rhythm.log=1"]
    place = tmp_path / "run"
    found = start_ranks(processes, 2, place, *words)
    while not (place / "metrics.jsonl").exists() or len(read_log(f"{place}/metrics.jsonl")) < 4:
        assert all(process.is_alive() for process in found)
    os.kill(found[1].pid, signal.SIGTERM)
    assert ended(found) == [0, 0]
    results = json.loads((place / "train_results.json").read_text())
    assert not results["is_finished"]
    assert results["train_reason"] == "another rank was asked to stop"
    assert list_states(str(place / "states"))


def torchrun(place, *words) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    program = [*command, small_training.__file__, str(place), *words]
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_torchrun_starts_the_ranks_of_which_one_speaks(tmp_path):
    done = torchrun(tmp_path / "run", "trainer.limits.max_steps=6")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/bundle/model.safetensors").exists()
    assert done.stderr.count("ended at step 6") == 1


def test_a_fault_on_the_first_rank_ends_all_with_its_sentence(tmp_path):
    done = torchrun(tmp_path / "run", "trainer.best.figure=los")
    assert done.returncode
    assert "validation gives no 'los'. Did you mean 'loss'?" in done.stderr
