"""What preparation knows so far, on disk: a killed run goes on from here, and memory does not grow with the corpus.

`recordings` outlives a run: what was measured of a file, under the mark that the file bore. The draft of the corpus
(`draft.py`) lies in a second file, which belongs to the run that is going on and is thrown away with it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sonant.base import storage
from sonant.base.errors import StorageError
from sonant.base.randomness import stable_hash
from sonant.corpus.preparation.facts import RecordingFacts

_LAYOUT = "CREATE TABLE IF NOT EXISTS recordings (key TEXT PRIMARY KEY, mark TEXT, facts TEXT) WITHOUT ROWID"
_COMMIT_SECONDS = 0.25


class Journal:
    """One SQLite file, written by one process; opened with `open_journal`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._committed = time.monotonic()

    def known(self, key: str) -> tuple[str, RecordingFacts] | None:
        """The mark and the facts of a recording measured before."""
        found = self.connection.execute("SELECT mark, facts FROM recordings WHERE key = ?", (key,)).fetchone()
        return (found[0], RecordingFacts.from_json(found[1])) if found else None

    def remember(self, key: str, mark: str, facts: RecordingFacts) -> None:
        self.connection.execute("INSERT OR REPLACE INTO recordings VALUES (?, ?, ?)", (key, mark, facts.to_json()))

    def commit_now_and_then(self) -> None:
        """A kill costs what was measured since: a quarter of a second."""
        if time.monotonic() - self._committed > _COMMIT_SECONDS:
            self.commit()

    def commit(self) -> None:
        self.connection.commit()
        self._committed = time.monotonic()

    def forget_unused(self) -> None:
        """Drops what is known of recordings that this whole run did not meet."""
        self.connection.execute("DELETE FROM recordings WHERE key NOT IN (SELECT key FROM draft.met)")
        self.commit()


def journal_folder(folder: str) -> str:
    """Where the journal of a corpus lies: beside it, or in the user's cache for one in a bucket."""
    if not storage.is_remote(folder):
        return os.path.join(folder, ".prepare")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "sonant", "prepare", f"{stable_hash(folder.rstrip('/')):016x}")


@contextmanager
def open_journal(folder: str) -> Iterator[Journal]:
    """Opens the journal that lies in a folder for one writer: a second one is refused, a damaged file begun anew."""
    with storage.storage_errors(folder):
        os.makedirs(folder, exist_ok=True)
        lock = open(os.path.join(folder, "lock"), "w")  # noqa: SIM115 - closed below
    with lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not flock: workers of a killed run would inherit it
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                problem = "another `sonant prepare` is writing this corpus."
                raise StorageError(folder, problem, "Wait for it to end.") from error
            # a file system without locks: then it is on the user not to start two
        connection = _connect(folder)
        try:
            yield Journal(connection)
        finally:
            connection.commit()
            connection.close()
            _remove(os.path.join(folder, "draft.sqlite"))


def _connect(folder: str) -> sqlite3.Connection:
    path = os.path.join(folder, "journal.sqlite")
    try:
        return _lay_out(path, folder)
    except sqlite3.DatabaseError:
        _remove(path)
        return _lay_out(path, folder)


def _lay_out(path: str, folder: str) -> sqlite3.Connection:
    draft = os.path.join(folder, "draft.sqlite")
    _remove(draft)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # without it, WAL does not work on network disks
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last second, never the file
    connection.execute(_LAYOUT)
    connection.execute("SELECT count(*) FROM recordings")  # a damaged file says so now
    connection.execute("ATTACH ? AS draft", (draft,))
    connection.execute("PRAGMA draft.journal_mode = OFF")
    connection.execute("PRAGMA draft.synchronous = OFF")
    return connection


def _remove(path: str) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)
