"""What Lhotse's objects say, as rows: each supervision of a cut is one, and a cut without any is one by itself.

Where a cut has one supervision the row is called by the cut, as in training recipes, else by the supervision.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sonant.corpus.sources.lhotse_audio import audio_of, cut_within
from sonant.corpus.sources.tables.cells import CellError, seconds_of
from sonant.corpus.sources.tables.columns import extra_name
from sonant.corpus.sources.tables.tabular import Row, Table
from sonant.corpus.utterance import Finding

_SAID = ("text", "speaker")
_FACTS = ("language", "gender")
_TOLERANCE = 0.05  # seconds that a supervision may reach beyond its cut: they are rounded apart


def rows_of_cut(row: Row) -> Iterator[Row | Finding]:
    """The utterances of one cut."""
    id = str(row.cells.get("id") or "")
    try:
        cut = cut_within(row.cells)
        start, seconds = _time(cut, "start"), _time(cut, "duration")
        supervisions = _list(cut, "supervisions")
    except CellError as error:
        yield error.finding(row.place, id)
        return
    for said in supervisions or [{}]:
        name = id if len(supervisions) < 2 else str(said.get("id") or "")
        try:
            first, lasts = _part_of(said, seconds) if said else (0.0, seconds)
            audio, channel = audio_of(cut.get("recording"), said.get("channel", cut.get("channel")))
            cells = _cells(name, audio, channel, round(start + first, 9), lasts)
            yield Row(row.place, cells | _custom(cut) | _about(said))
        except CellError as error:
            yield error.finding(row.place, name)


def rows_of_recordings(recordings: Table) -> Table:
    """Each recording is an utterance."""

    def rows() -> Iterator[Row | Finding]:
        for row in recordings.rows():
            yield row if isinstance(row, Finding) else _whole(row)

    return _table(recordings, rows)


def rows_of_supervisions(supervisions: Table, recordings: Table) -> Table:
    """What is said in recordings that another manifest names; these are held in memory."""

    def rows() -> Iterator[Row | Finding]:
        known: dict[str, Row] = {}
        for row in recordings.rows():
            if isinstance(row, Finding):
                yield row
            elif (first := known.setdefault(str(row.cells.get("id")), row)) is not row:
                problem = f"'{row.cells.get('id')}' is there already, at {first.place}."
                yield Finding(rule="bad-line", place=row.place, problem=problem, action="Remove one of the two.")
        unused = dict(known)
        for row in supervisions.rows():
            if isinstance(row, Finding):
                yield row
                continue
            unused.pop(str(row.cells.get("recording_id")), None)
            yield _supervised(row, known, recordings.location)
        yield from _unused(list(unused.values()))

    return _table(supervisions, rows)


def _table(of: Table, rows: Callable[[], Iterator[Row | Finding]]) -> Table:
    columns = dict.fromkeys(name for row in rows() if isinstance(row, Row) for name in row.cells)
    return Table(of.location, tuple(columns), rows, True, of.findings)


def _whole(row: Row) -> Row | Finding:
    id = str(row.cells.get("id") or "")
    try:
        audio, channel = audio_of(row.cells)
        return Row(row.place, {"id": id, "audio": audio, "channel": channel} | _custom(row.cells))
    except CellError as error:
        return error.finding(row.place, id)


def _supervised(row: Row, known: Mapping[str, Row], location: str) -> Row | Finding:
    said, id = row.cells, str(row.cells.get("id") or "")
    name = str(said.get("recording_id"))
    try:
        if name not in known:
            action = "Correct its 'recording_id', or add the recording there."
            raise CellError("missing-audio", f"its recording '{name}' is not in {location}", action)
        audio, channel = audio_of(known[name].cells, said.get("channel"))
        cells = _cells(id, audio, channel, _time(said, "start"), _time(said, "duration"))
        return Row(row.place, cells | _custom(known[name].cells) | _about(said))
    except CellError as error:
        return error.finding(row.place, id)


def _unused(recordings: Sequence[Row]) -> Iterator[Finding]:
    if recordings:
        problem = f"nothing is told of {len(recordings)} recordings, among them '{recordings[0].cells.get('id')}'."
        action = "Add their supervisions, if something is said there."
        yield Finding(
            rule="unused-recording", place=recordings[0].place, problem=problem, action=action, is_error=False
        )


def _cells(id: str, audio: str, channel: int | None, start: float, seconds: float) -> dict[str, Any]:
    return {"id": id, "audio": audio, "start": start, "seconds": seconds, "channel": channel}


def _part_of(said: Mapping[str, Any], seconds: float) -> tuple[float, float]:
    """Where a supervision begins in its cut, and how long it is; both within the cut."""
    start, lasts = _time(said, "start"), _time(said, "duration")
    beyond = max(-start, start + lasts - seconds)
    if beyond > _TOLERANCE:
        problem = f"what is said goes on for {beyond:.2f} s beyond the cut, so that its text is not all in it"
        raise CellError("bad-time", problem, "Cut where nobody speaks, or leave such supervisions out.")
    first = max(start, 0.0)
    return first, round(min(start + lasts, seconds) - first, 9)


def _about(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a supervision tells beside its place; times of words count from its own start."""
    cells = {name: said[name] for name in (*_SAID, *_FACTS) if name in said} | _custom(said)
    words = (said.get("alignment") or {}).get("word") if isinstance(said.get("alignment"), dict) else None
    if words:
        start = seconds_of(said["start"])
        times = [[one[0], round(one[1] - start, 3), round(one[1] - start + one[2], 3)] for one in words]
        cells["words"] = json.dumps(times, ensure_ascii=False)
    return cells


def _custom(of: Mapping[str, Any]) -> dict[str, Any]:
    """Somebody's own fields; arrays and features lie elsewhere and are left there."""
    custom = of.get("custom")
    if not isinstance(custom, dict):
        return {}
    return {extra_name(name): value for name, value in custom.items() if not isinstance(value, dict)}


def _list(of: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    found = of.get(key) or []
    if not (isinstance(found, list) and all(isinstance(one, dict) for one in found)):
        raise CellError("bad-line", f"its '{key}' is no list of objects", "Write the manifest again with Lhotse.")
    return found


def _time(of: Mapping[str, Any], key: str) -> float:
    if of.get(key) is None:
        raise CellError("bad-line", f"it has no '{key}'", "Write the manifest again with Lhotse.")
    return round(seconds_of(of[key]), 9)
