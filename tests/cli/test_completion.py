"""Completion in the shells themselves: bash, fish, and zsh at a terminal of its own."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import time

import pytest

from sonant.cli.main import VERBS, main, verb_module

LINES = [
    ("sonant pre", "prepare"),
    ("sonant prepare --skip-i", "--skip-invalid"),
    ("sonant prepare --from kal", "kaldi"),
    ("sonant prepare a --split-by spea", "speaker"),
    ("sonant completion fi", "fish"),
]


@pytest.fixture
def script(capsys, tmp_path):
    """The path of the script for a shell; the shell must be there."""

    def written(shell):
        if not shutil.which(shell):
            pytest.skip(f"{shell} is not installed")
        assert main(["completion", shell]) == 0
        (tmp_path / "script").write_text(capsys.readouterr().out)
        return tmp_path / "script"

    return written


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_know_every_verb_and_option(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for verb in VERBS:
        assert verb in script
        for name in verb_module(verb).parser().option_names():
            assert name.lstrip("-") in script


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_bash_completes_verbs_options_and_choices(line, expected, script):
    words = line.split(" ")
    asked = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _sonant; echo ${{COMPREPLY[@]}}"
    command = ["bash", "-c", f"source {script('bash')}; {asked}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [expected]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_fish_completes_the_same(line, expected, script):
    command = ["fish", "-c", f"source {script('fish')}; complete --do-complete='{line}'"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [found.split("\t")[0] for found in done.stdout.splitlines()] == [expected]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_zsh_completes_the_same(line, expected, script, tmp_path):
    path = script("zsh")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(HOME=str(tmp_path), TERM="dumb", COLUMNS="200")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        _typed(
            terminal, f"autoload -Uz compinit; compinit -u -d {tmp_path}/dump; source {path}; echo rea''dy\n", "ready"
        )
        whole = f"{line.rpartition(' ')[0]} {expected}"
        assert whole in _typed(terminal, f"{line}\t", whole)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _typed(terminal, keys, awaited):
    """What a terminal shows after some keys, once it shows what is awaited."""
    os.write(terminal, keys.encode())
    shown, deadline = b"", time.monotonic() + 20
    while awaited.encode() not in shown and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 4096)
    return shown.decode(errors="replace")
