"""The corpus as it takes shape: rows and findings on disk, in the order of the sources, thrown away after the run."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sonant.corpus.preparation.rules import Severity, judged
from sonant.corpus.utterance import Finding, Utterance

_LAYOUT = """
DROP TABLE IF EXISTS draft.rows;
DROP TABLE IF EXISTS draft.findings;
DROP TABLE IF EXISTS draft.met;
CREATE TABLE draft.rows (
    position INTEGER PRIMARY KEY, source INTEGER, id TEXT, place TEXT, audio TEXT, start REAL, seconds REAL,
    sample_rate INTEGER, channel INTEGER, num_channels INTEGER, text TEXT, speaker TEXT, split TEXT,
    labels TEXT, tokens TEXT, extra TEXT, content TEXT, peak REAL, level REAL, rejected INTEGER);
CREATE TABLE draft.findings (
    position INTEGER, rule TEXT, place TEXT, problem TEXT, action TEXT, id TEXT, is_error INTEGER);
CREATE TABLE draft.met (key TEXT PRIMARY KEY, location TEXT, mark TEXT) WITHOUT ROWID;
"""


class Row(NamedTuple):
    """An utterance as it lies in the draft; positions count what the sources gave, utterances and findings alike."""

    position: int
    source: int
    id: str
    place: str
    audio: str | None
    start: float
    seconds: float
    sample_rate: int | None
    channel: int | None
    num_channels: int | None
    text: str | None
    speaker: str | None
    split: str | None
    labels: str  # JSON, as the next two
    tokens: str | None
    extra: str
    content: str | None
    peak: float | None
    level: float | None
    rejected: bool

    @classmethod
    def of(cls, position: int, source: int, utterance: Utterance) -> Row:
        """The row before anything of it is measured."""
        return cls(
            position=position,
            source=source,
            id=utterance.id,
            place=utterance.place,
            audio=utterance.audio,
            start=utterance.start,
            seconds=utterance.seconds or 0.0,
            sample_rate=None,
            channel=utterance.channel,
            num_channels=None,
            text=utterance.text,
            speaker=utterance.speaker or None,
            split=utterance.split or None,
            labels=_as_json(utterance.labels),
            tokens=None if utterance.tokens is None else json.dumps(utterance.tokens),
            extra=_as_json(utterance.extra),
            content=None,
            peak=None,
            level=None,
            rejected=False,
        )


class Sound(NamedTuple):
    """Where the utterance of a finding is heard; no audio where it is about none, no seconds where none were heard."""

    audio: str
    start: float
    seconds: float


@dataclass(frozen=True)
class DraftUtterance:
    """What splitting asks of an utterance."""

    position: int
    id: str
    speaker: str | None
    seconds: float
    split: str | None
    labels: Mapping[str, Any]
    extra: Mapping[str, Any]


class Draft:
    """Lies in a database of its own beside the journal and shares its connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        connection.executescript(_LAYOUT)

    def add(self, rows: Iterable[Row]) -> None:
        self.connection.executemany(f"INSERT INTO draft.rows VALUES ({', '.join('?' * len(Row._fields))})", rows)

    def add_judged(self, findings: Iterable[tuple[int | None, Finding]], severities: dict[str, Severity]) -> None:
        """The findings as grave as the user wants them, or not at all."""
        self.add_findings((position, kept) for position, one in findings if (kept := judged(one, severities)))

    def add_findings(self, findings: Iterable[tuple[int | None, Finding]]) -> None:
        """A position of None is the corpus as a whole."""
        self.connection.executemany(
            "INSERT INTO draft.findings VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((position, f.rule, f.place, f.problem, f.action, f.id, f.is_error) for position, f in findings),
        )

    def add_met(self, met: Iterable[tuple[str, str, str]]) -> None:
        """Notes key, location and mark of recordings that belong to this run."""
        self.connection.executemany("INSERT OR IGNORE INTO draft.met VALUES (?, ?, ?)", met)

    def set_splits(self, splits: Iterable[tuple[str | None, int]]) -> None:
        """The split of the utterance at each position."""
        self.connection.executemany("UPDATE draft.rows SET split = ? WHERE position = ?", splits)

    def move_audio(self, moved: Iterable[tuple[str, int]]) -> None:
        """The utterance at each position has a recording of its own now."""
        query = "UPDATE draft.rows SET audio = ?, start = 0, channel = NULL, num_channels = 1 WHERE position = ?"
        self.connection.executemany(query, moved)

    def reject(self) -> None:
        """Takes out the rows that an error was found in."""
        self.connection.execute(
            "UPDATE draft.rows SET rejected = 1 WHERE NOT rejected AND position IN "
            "(SELECT position FROM draft.findings WHERE is_error)"
        )

    def select(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Rows of the answer, one after the other; each query has a cursor of its own."""
        yield from self.connection.execute(query, values)

    def run(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement, values)

    def kept(self) -> Iterator[Row]:
        """The rows that are not rejected, in the order of the sources."""
        query = f"SELECT {', '.join(Row._fields)} FROM draft.rows WHERE NOT rejected ORDER BY position"
        return map(Row._make, self.select(query))

    def __iter__(self) -> Iterator[DraftUtterance]:
        """The same rows as `kept`, with what splitting asks of them; each iteration starts anew."""
        query = "SELECT position, id, speaker, seconds, split, labels, extra FROM draft.rows WHERE NOT rejected"
        for position, id, speaker, seconds, split, labels, extra in self.select(query + " ORDER BY position"):
            yield DraftUtterance(position, id, speaker, seconds, split, from_json(labels), from_json(extra))

    def findings(self) -> Iterator[tuple[Finding, Sound]]:
        """With the sound of the utterance; in the order of the sources, the corpus as a whole last."""
        query = (
            "SELECT f.rule, f.place, f.problem, f.action, f.id, f.is_error, "
            "coalesce(r.audio, ''), coalesce(r.start, 0), coalesce(r.seconds, 0) FROM draft.findings f "
            "LEFT JOIN draft.rows r USING (position) ORDER BY f.position IS NULL, f.position, f.rowid"
        )
        for rule, place, problem, action, id, is_error, *sound in self.select(query):
            found = Finding(rule=rule, place=place, problem=problem, action=action, id=id, is_error=bool(is_error))
            yield found, Sound(*sound)

    def rejected(self) -> Iterator[tuple[Finding, Sound]]:
        """For each utterance or line left out, the first error that was found in it."""
        last = None
        query = (
            "SELECT f.position, f.rule, f.place, f.problem, f.action, f.id, "
            "coalesce(r.audio, ''), coalesce(r.start, 0), coalesce(r.seconds, 0) FROM draft.findings f "
            "LEFT JOIN draft.rows r USING (position) WHERE is_error AND f.position IS NOT NULL "
            "ORDER BY f.position, f.rowid"
        )
        for position, rule, place, problem, action, id, *sound in self.select(query):
            if position != last:
                yield Finding(rule=rule, place=place, problem=problem, action=action, id=id), Sound(*sound)
            last = position

    def num_rejected(self) -> dict[str, int]:
        """Utterances and lines left out, by the first error that was found in each; most frequent first."""
        counts = Counter(found.rule for found, _ in self.rejected())
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def counts(self, *, is_error: bool) -> dict[str, int]:
        """Findings of each rule, most frequent first."""
        query = "SELECT rule, count(*) FROM draft.findings WHERE is_error = ? GROUP BY rule ORDER BY 2 DESC, 1"
        return dict(self.select(query, is_error))


def from_json(text: str) -> dict[str, Any]:
    """Labels or further columns of a row; most have none."""
    values: dict[str, Any] = {} if text == "{}" else json.loads(text)
    return values


def _as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(_plain(values), ensure_ascii=False) if values else "{}"


def _plain(value: Any) -> Any:
    """What JSON can hold: numbers that are none become missing, everything unknown its text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    try:
        number = float(value)  # numpy's numbers too
    except (TypeError, ValueError):
        return str(value)
    return number if math.isfinite(number) else None
