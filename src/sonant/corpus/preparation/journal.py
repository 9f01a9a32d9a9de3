"""What preparation knows so far, on disk: a killed run goes on from here, and memory does not grow with the corpus.

`recordings` outlives a run: what was measured of a file, under the mark that the file bore. `rows` and `findings`
belong to the run that is going on and are laid anew by each.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from sonant.base.errors import StorageError
from sonant.base.randomness import stable_hash
from sonant.corpus.preparation.facts import RecordingFacts, Span, SpanFacts
from sonant.corpus.utterance import Finding, Utterance

_LAYOUT = """
CREATE TABLE IF NOT EXISTS recordings (key TEXT PRIMARY KEY, mark TEXT, facts TEXT, run INTEGER) WITHOUT ROWID;
DROP TABLE IF EXISTS rows;
DROP TABLE IF EXISTS findings;
CREATE TABLE rows (
    position INTEGER PRIMARY KEY, id TEXT, place TEXT, audio TEXT, start REAL, seconds REAL, sample_rate INTEGER,
    channel INTEGER, num_channels INTEGER, text TEXT, speaker TEXT, split TEXT, labels TEXT, tokens TEXT, extra TEXT,
    content TEXT, peak REAL, level REAL, is_rejected INTEGER DEFAULT 0);
CREATE TABLE findings (position INTEGER, rule TEXT, place TEXT, problem TEXT, action TEXT, id TEXT, is_error INTEGER);
"""
_COMMIT_SECONDS = 1.0


class Journal:
    """One SQLite file, written by one process; opened with `open_journal`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._committed = time.monotonic()
        (newest,) = connection.execute("SELECT coalesce(max(run), 0) FROM recordings").fetchone()
        self._run = newest + 1

    def known(self, key: str) -> tuple[str, RecordingFacts] | None:
        """The mark and the facts of a recording measured before."""
        found = self.connection.execute("SELECT mark, facts FROM recordings WHERE key = ?", (key,)).fetchone()
        return (found[0], _facts_from(found[1])) if found else None

    def remember(self, key: str, mark: str, facts: RecordingFacts) -> None:
        values = (key, mark, json.dumps(asdict(facts)), self._run)
        self.connection.execute("INSERT OR REPLACE INTO recordings VALUES (?, ?, ?, ?)", values)
        self.commit_now_and_then()

    def touch(self, key: str) -> None:
        """Says that this run still needs what is known of a recording."""
        self.connection.execute("UPDATE recordings SET run = ? WHERE key = ?", (self._run, key))
        self.commit_now_and_then()

    def add_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            names = ", ".join(row)
            marks = ", ".join("?" * len(row))
            self.connection.execute(f"INSERT INTO rows ({names}) VALUES ({marks})", tuple(row.values()))

    def add_findings(self, findings: Iterable[tuple[int | None, Finding]]) -> None:
        self.connection.executemany(
            "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (position, found.rule, found.place, found.problem, found.action, found.id, found.is_error)
                for position, found in findings
            ),
        )

    def findings(self, *, errors_only: bool = False) -> Iterator[Finding]:
        """In the order of the source; the corpus as a whole comes last."""
        query = "SELECT rule, place, problem, action, id, is_error FROM findings "
        query += "WHERE is_error " if errors_only else ""
        for row in self.connection.execute(query + "ORDER BY position IS NULL, position, rowid"):
            rule, place, problem, action, name, is_error = row
            yield Finding(rule=rule, place=place, problem=problem, action=action, id=name, is_error=bool(is_error))

    def select(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        yield from self.connection.execute(query, values)

    def commit_now_and_then(self) -> None:
        if time.monotonic() - self._committed > _COMMIT_SECONDS:
            self.commit()

    def commit(self) -> None:
        self.connection.commit()
        self._committed = time.monotonic()

    def forget_unused(self) -> None:
        """Drops what is known of recordings that this whole run did not meet."""
        self.connection.execute("DELETE FROM recordings WHERE run < ?", (self._run,))
        self.commit()


def key_of(audio: str, spans: Iterable[Span]) -> str:
    """Names a recording and the stretches that are asked of it."""
    return f"{stable_hash(audio, *((span.start, span.seconds, span.channel) for span in spans)):016x}"


@contextmanager
def open_journal(folder: str) -> Iterator[Journal]:
    """Opens the journal of a corpus for one writer; a second one is refused, a damaged file is begun anew."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StorageError(folder, "another `sonant prepare` is writing this corpus.", "Wait for it to end.") from error
        connection = _connect(os.path.join(folder, "journal.sqlite"))
        try:
            yield Journal(connection)
        finally:
            connection.commit()
            connection.close()


def _connect(path: str) -> sqlite3.Connection:
    try:
        return _lay_out(path)
    except sqlite3.DatabaseError:
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.unlink(path + suffix)
        return _lay_out(path)


def _lay_out(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last second, never the file
    connection.executescript(_LAYOUT)
    return connection


def _facts_from(text: str) -> RecordingFacts:
    fields = json.loads(text)
    spans = tuple(SpanFacts(**span) for span in fields.pop("spans"))
    return RecordingFacts(**fields, spans=spans)


def row_of(position: int, utterance: Utterance) -> dict[str, Any]:
    """An utterance as a row of the journal, without what is measured."""
    return {
        "position": position,
        "id": utterance.id,
        "place": utterance.place,
        "audio": utterance.audio,
        "start": utterance.start,
        "seconds": utterance.seconds or 0.0,
        "channel": utterance.channel,
        "text": utterance.text,
        "speaker": utterance.speaker,
        "split": utterance.split,
        "labels": json.dumps(utterance.labels),
        "tokens": None if utterance.tokens is None else json.dumps(utterance.tokens),
        "extra": json.dumps(utterance.extra, default=str),
    }
