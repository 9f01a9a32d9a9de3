"""The same corpus wherever the work is done: in this process, on all cores, on Ray; and memory that does not grow."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

import sonant
from sonant.base.errors import DependencyError
from sonant.corpus.preparation.engines import in_order, open_engine

RATE = 8000


def _squares(numbers):
    return [number * number for number in numbers]


def _crashing(numbers):
    if 13 in numbers:
        os.kill(os.getpid(), 9)
    return _squares(numbers)


def _who(tasks):
    sum(range(300_000))
    return [os.getpid() for _ in tasks]


def corpus_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_answers_come_in_the_order_of_the_questions(workers):
    batches = [(first, list(range(first, first + 3))) for first in range(0, 300, 3)]
    with open_engine("local", workers) as engine:
        found = list(in_order(engine, _squares, batches, lambda task: -1))
    assert found == [(first, _squares(numbers)) for first, numbers in batches]


@pytest.mark.parametrize("workers", [2, 3])
def test_a_task_that_takes_its_process_down_costs_only_itself(workers):
    batches = [(None, [0])] + [(None, list(range(first, first + 4))) for first in range(1, 61, 4)]
    with open_engine("local", workers) as engine:
        engine._seconds = 1.0  # beyond what is done in this process, which the task would take down
        found = [
            answer for _, answers in in_order(engine, _crashing, batches, lambda task: -task) for answer in answers
        ]
    assert found == [-13 if number == 13 else number * number for number in range(61)]


@pytest.mark.slow
def test_work_is_shared_among_as_many_processes_as_asked_for():
    with open_engine("local", 3) as engine:
        asked = ((None, [0]) for _ in range(300))
        found = {pid for _, (pid,) in in_order(engine, _who, asked, lambda task: 0)}
    assert len(found - {os.getpid()}) == 3


def test_all_cores_are_used_unless_told_otherwise():
    with open_engine("local", 0) as engine:
        assert engine.num_workers == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_number_of_workers_changes_nothing(lay, prepared, tmp_path, workers):
    laid = lay(90)
    laid.add("silent.wav", np.zeros(4000, np.float32))
    table = laid.table()
    prepared(table, "alone/corpus", skip_invalid=True)
    prepared(table, "shared/corpus", skip_invalid=True, workers=workers)
    assert corpus_files(tmp_path / "alone" / "corpus") == corpus_files(tmp_path / "shared" / "corpus")


def test_a_decoder_that_crashes_is_a_fault_of_that_recording(lay, prepared, listed, monkeypatch):
    from sonant.audio.recording import Recording
    from sonant.corpus.preparation import engines

    laid = lay(70)
    laid.add("fatal.wav", laid.speech(seed=90))
    plain, parent = Recording.blocks, os.getpid()

    def blocks(self, num_samples):
        if self.where.endswith("fatal.wav") and os.getpid() != parent:
            os.kill(os.getpid(), 11)
        return plain(self, num_samples)

    monkeypatch.setattr(Recording, "blocks", blocks)
    monkeypatch.setattr(engines, "_ALONE_SECONDS", 0.0)
    result = prepared(laid.table(), skip_invalid=True, workers=2)
    assert (result.num_utterances, result.rejected) == (70, {"unreadable-audio": 1})
    (line,) = listed("rejected.csv")
    assert "decoding it brought the process down. " in line["problem"] + " "
    assert line["place"].endswith("table.csv:72")


def test_ray_that_is_not_installed_is_asked_for(lay, prepared, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DependencyError, match=r"--engine ray needs the package 'ray'.*pip install 'sonant\[ray\]'"):
        prepared(lay(2).table(), engine="ray")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_ray_prepares_the_same_corpus(lay, tmp_path):
    """In a process of its own, because a cluster stays with the process that started it."""
    laid = lay(90)
    laid.add("silent.wav", np.zeros(4000, np.float32))
    table = laid.table()
    for engine in ("local", "ray"):
        command = [sys.executable, "-m", "sonant.cli.main", "prepare", table, str(tmp_path / engine / "corpus")]
        options = ["--engine", engine, "--workers", "2", "--skip-invalid", "--pack"]
        done = subprocess.run([*command, *options], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert corpus_files(tmp_path / "local" / "corpus") == corpus_files(tmp_path / "ray" / "corpus")


_PEAK = """
import resource, sys, sonant
sonant.prepare(sys.argv[1], sys.argv[2], sonant.PrepareConfig(workers=2))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(lay, tmp_path):
    """Four times as many utterances and recordings, and one recording four times as long as all the others."""
    peaks = []
    rng = np.random.default_rng(0)
    for times in (1, 4):
        laid = lay(0, f"set{times}")
        for number in range(30 * times):
            laid.write(f"{number}.wav", rng.integers(-9000, 9000, 60 * RATE).astype(np.int16))
            for at in range(300):
                laid.add(f"{number}.wav", text=f"{at}", start=f"{at / 5:g}", end=f"{at / 5 + 0.2:g}")
        with soundfile.SoundFile(laid.folder / "long.wav", "w", RATE, 1) as long:
            for minute in range(30 * times):
                long.write(rng.integers(-9000, 9000, 60 * RATE).astype(np.int16))
                laid.add("long.wav", text="and on it went", start=f"{minute * 60}", end=f"{minute * 60 + 50}")
        command = [sys.executable, "-c", _PEAK, laid.table(), str(tmp_path / f"corpus{times}")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        peaks.append([int(kilobytes) / 1024 for kilobytes in done.stdout.split()])
        assert len(sonant.open_corpus(str(tmp_path / f"corpus{times}"))) == 9030 * times
    (small, small_worker), (large, large_worker) = peaks
    assert large < 1.2 * small, peaks  # MB; 27,000 utterances more, held as objects, would be a third more
    assert large_worker < 1.2 * small_worker, peaks
