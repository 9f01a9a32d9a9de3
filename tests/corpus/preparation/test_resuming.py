"""Killed at any moment and run again gives the corpus of a run that was never killed; a third run has nothing to do."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sonant
from sonant.base.errors import ManifestError, StorageError
from sonant.corpus.preparation.journal import journal_folder, open_journal

COMMAND = [sys.executable, "-m", "sonant.cli.main", "prepare"]


def corpus_bytes(folder: Path) -> dict[str, bytes]:
    """Everything that a corpus consists of, without the journal of its preparation."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {name: path.read_bytes() for path in found if not (name := str(path.relative_to(folder))).startswith(".")}


@pytest.fixture
def sound_set(lay):
    """Utterances enough for several batches of work, some of them faulty, in long files with several each."""
    laid = lay(120)
    long = np.concatenate([laid.speech(seed=300 + number) for number in range(6)])
    laid.write("long.wav", long)
    for number in range(6):
        start = f"{number * 0.5:g}"
        laid.add("long.wav", id=f"part{number}", start=start, end=f"{number * 0.5 + 0.5:g}")
    laid.add("silent.wav", np.zeros(4000, np.float32), id="silent")
    laid.add("gone.wav", id="gone")
    for row in laid.rows:
        row.setdefault("id", row["audio"].partition(".")[0])
    return laid


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--pack"]], ids=["addressed", "packed"])
def test_killed_at_any_moment_and_run_again_is_as_never_killed(sound_set, tmp_path, options):
    command = [*COMMAND, sound_set.table(), "--skip-invalid", "--workers", "2", "--seeds", "0,1", *options]
    started = time.monotonic()
    subprocess.run([*command, str(tmp_path / "whole" / "corpus")], check=True, capture_output=True)
    lasts = time.monotonic() - started
    expected = corpus_bytes(tmp_path / "whole" / "corpus")
    assert {"manifest.parquet", "corpus.json", "findings.csv", "rejected.csv", "splits.parquet"} <= set(expected)

    rng = np.random.default_rng(len(options))
    num_killed = 0
    for attempt in range(4):
        folder = tmp_path / f"attempt{attempt}" / "corpus"
        for after in np.sort(rng.uniform(0.2, 1.0, 3)) * lasts:  # killed again and again on its way
            with subprocess.Popen([*command, str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
                try:
                    run.wait(after)
                except subprocess.TimeoutExpired:
                    run.send_signal(signal.SIGKILL)
                    num_killed += 1
        done = subprocess.run([*command, str(folder)], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = corpus_bytes(folder)
        left = {name for name in found if name not in expected}
        assert not left, "a killed run leaves nothing behind that a later one does not clear away"
        assert found == expected
    assert num_killed >= 3


def test_an_older_corpus_stays_whole_while_a_new_one_is_refused(lay, prepared, tmp_path):
    laid = lay(8)
    table = laid.table()
    prepared(table)
    kept = corpus_bytes(tmp_path / "corpus")
    laid.add("gone.wav")
    laid.table()
    with pytest.raises(ManifestError, match="missing-audio"):
        prepared(table)
    now = corpus_bytes(tmp_path / "corpus")
    assert {**now, "findings.csv": b""} == {**kept, "findings.csv": b""}
    assert len(sonant.open_corpus(str(tmp_path / "corpus"))) == 8


def test_nothing_is_decoded_twice(lay, prepared, tmp_path):
    laid = lay(40)
    table = laid.table()
    assert prepared(table).num_decoded == 40
    first = corpus_bytes(tmp_path / "corpus")
    for path in laid.folder.glob("*.wav"):  # who read a sample would notice
        path.chmod(0)
    again = prepared(table)
    assert again.num_decoded == 0
    assert corpus_bytes(tmp_path / "corpus") == first


def test_what_was_measured_before_a_kill_is_not_measured_again(lay, prepared, tmp_path, monkeypatch):
    """A pull of the plug in the middle of the writing: all the listening has been done."""
    from sonant.corpus.preparation import run

    laid = lay(20)
    table = laid.table()

    def pulled(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(run, "write_corpus", pulled)
        with pytest.raises(KeyboardInterrupt):
            prepared(table)
    assert not (tmp_path / "corpus" / "manifest.parquet").exists()
    assert prepared(table).num_decoded == 0


def test_a_damaged_journal_costs_time_and_nothing_else(lay, prepared, tmp_path):
    laid = lay(8)
    table = laid.table()
    prepared(table)
    first = corpus_bytes(tmp_path / "corpus")
    journal = Path(journal_folder(str(tmp_path / "corpus"))) / "journal.sqlite"
    journal.write_bytes(b"\0" * 4096)
    assert prepared(table).num_decoded == 8
    assert corpus_bytes(tmp_path / "corpus") == first


def test_what_is_no_longer_used_is_forgotten(lay, prepared, tmp_path):
    laid = lay(8)
    prepared(laid.table())
    del laid.rows[4:]
    prepared(laid.table())
    with open_journal(journal_folder(str(tmp_path / "corpus"))) as journal:
        assert journal.connection.execute("SELECT count(*) FROM recordings").fetchone() == (4,)


def test_two_preparations_of_one_corpus_do_not_meet(lay, tmp_path):
    folder = tmp_path / "corpus"
    with open_journal(journal_folder(str(folder))):
        done = subprocess.run([*COMMAND, lay(3).table(), str(folder)], check=False, capture_output=True, text=True)
    assert done.returncode == StorageError.exit_code
    assert "another `sonant prepare` is writing this corpus. Wait for it to end." in done.stderr
    assert not (folder / "manifest.parquet").exists()
