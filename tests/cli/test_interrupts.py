"""Ctrl-C ends long work at once, in one line, and the same command goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile

COMMAND = [sys.executable, "-m", "sonant.cli.main", "prepare"]


class EndedError(Exception):
    """A command was done before it could be interrupted."""


def interrupted(command, when):
    """What a command said and its code, after Ctrl-C in its terminal: every process of the group is told."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **options) as run:
        try:
            deadline = time.monotonic() + 60
            while not when():
                if run.poll() is not None or time.monotonic() > deadline:
                    raise EndedError
                time.sleep(0.02)
            os.killpg(run.pid, signal.SIGINT)  # a process that is not waited for yet keeps its number
            out, err = run.communicate(timeout=30)
        finally:
            if run.poll() is None:
                run.kill()
    if run.returncode == 0:
        raise EndedError
    return run.returncode, out, err


def processes_with(word):
    """Processes whose command line has this word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                if word.encode() in line.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def lengthen(source, num_files):
    """A set of so many minutes."""
    source.mkdir(exist_ok=True)
    rng = np.random.default_rng(len(list(source.iterdir())))
    for number in range(len(list(source.iterdir())), num_files):
        noise = rng.integers(-9000, 9000, 16000 * 60).astype(np.int16)
        soundfile.write(source / f"{number}.wav", noise, 16000)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_preparation_that_is_interrupted_goes_on_where_it_was(tmp_path, workers):
    for num_files in (40, 160, 640):  # a fast machine may be done with a short set before anything is kept
        lengthen(tmp_path / "set", num_files)
        corpus = tmp_path / f"corpus-{num_files}"
        command = [*COMMAND, str(tmp_path / "set"), str(corpus), "--workers", workers, "--json"]
        journal = corpus / ".prepare" / "journal.sqlite-wal"
        try:
            code, out, err = interrupted(command, lambda: journal.exists() and journal.stat().st_size > 20_000)  # noqa: B023
        except EndedError:
            continue
        break
    assert (code, out) == (130, "")
    assert err == "\nsonant: interrupted. Run the same command again to go on.\n"
    assert processes_with(str(corpus)) == []
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f'"num_utterances": {num_files}' in done.stdout
    (num_decoded,) = (line for line in done.stdout.splitlines() if '"num_decoded"' in line)
    assert int(num_decoded.strip(" ,").rpartition(" ")[2]) < num_files


@pytest.mark.slow
def test_a_demo_that_is_interrupted_goes_on_where_it_was(tmp_path):
    pytest.importorskip("espeakng_loader")
    command = [*COMMAND, "--from", "demo", str(tmp_path / "corpus"), "--hours", "0.05", "--workers", "2"]
    spoken = tmp_path / "corpus" / "recordings"
    code, out, err = interrupted(command, when=lambda: spoken.exists() and len(list(spoken.iterdir())) > 3)
    assert (code, out) == (130, "")
    assert err == "\nsonant: interrupted. Run the same command again to go on.\n"
    assert processes_with(str(tmp_path / "corpus")) == []
    subprocess.run(command, capture_output=True, check=True)
    whole = [*command[:-5], str(tmp_path / "whole"), *command[-4:]]
    subprocess.run(whole, capture_output=True, check=True)
    made, expected = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "recordings").iterdir()}
        for name in ("corpus", "whole")
    )
    assert made == expected
