"""The rows of a table become utterances, those of one recording next to each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonant.corpus.sources.locate import AudioFinder
from sonant.corpus.sources.naming import WHOLE_FOLDER, numbered, path_id
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.cells import CellError, present, seconds_of, span_of, text_of
from sonant.corpus.sources.tables.columns import Meaning
from sonant.corpus.sources.tables.labels import Further, Labels
from sonant.corpus.sources.tables.tabular import Row, Table
from sonant.corpus.utterance import Finding, Utterance

_CHANNELS = {"a": 0, "b": 1, "l": 0, "r": 1, "left": 0, "right": 1}


def survey(table: Table, meaning: Meaning, labels: Labels, further: Further) -> bool:
    """Lets labels and further columns learn, and tells whether the rows of each recording stand together."""
    seen: set[int] = set()
    last, is_grouped = None, True
    for row in table.rows():
        if isinstance(row, Finding):
            continue
        labels.learn(row.cells)
        further.learn(row.cells)
        name = _recording_name(row, meaning)
        if name != last:
            is_grouped &= hash(name) not in seen
            seen.add(hash(name))
            last = name
    return is_grouped


def _recording_name(row: Row, meaning: Meaning) -> str:
    return text_of(row.cells.get(meaning.columns.get("audio") or meaning.columns["id"]))


@dataclass(frozen=True)
class TableReader:
    """Turns the rows of one table into utterances."""

    table: Table
    meaning: Meaning
    split: str
    labels: Labels
    further: Further
    finder: AudioFinder
    options: SourceOptions

    def utterances(self, is_grouped: bool) -> Iterator[Utterance | Finding]:
        rows = self.table.rows() if is_grouped else self._gathered()
        group: list[Row] = []
        for row in rows:
            if isinstance(row, Finding):
                yield row
                continue
            if group and _recording_name(row, self.meaning) != _recording_name(group[0], self.meaning):
                yield from self._of_one_recording(group)
                group = []
            group.append(row)
        yield from self._of_one_recording(group)

    def _gathered(self) -> Iterator[Row | Finding]:
        """The rows of each recording together, in the order of their first ones: all are held for it."""
        by_name: dict[str, list[Row]] = {}
        for row in self.table.rows():
            if isinstance(row, Finding):
                yield row
            else:
                by_name.setdefault(_recording_name(row, self.meaning), []).append(row)
        for rows in by_name.values():
            yield from rows

    def _of_one_recording(self, rows: Sequence[Row]) -> Iterator[Utterance | Finding]:
        is_cut = len(rows) > 1 or bool({"start", "end", "start_ms", "end_ms"} & {*self.meaning.columns})
        for number, row in enumerate(rows, start=1):
            cells = present(row.cells, self.options.missing)
            id = self._text(cells, "id")
            audio = self._find(cells, id or "", row.place)
            if isinstance(audio, Finding):
                yield audio
                continue
            if not id:
                id = path_id(audio, self.finder.folder)
                id = numbered(id, number) if is_cut else id
            try:
                yield self.utterance(row.place, id, audio, cells)
            except CellError as error:
                yield error.finding(row.place, id)

    def _find(self, cells: Mapping[str, Any], id: str, place: str) -> str | Finding:
        name = self._text(cells, "audio") or id
        if not name:
            problem = f"the row names no recording: {self._named('audio', 'id')} is empty."
            return Finding(rule="missing-audio", place=place, problem=problem, action="Fill it in, or remove the row.")
        found = self.finder.find(name, place=place, id=id)
        if isinstance(found, Finding) and found.rule == "missing-audio" and "audio" not in self.meaning.columns:
            inside = self.finder.find(f"{name}/{WHOLE_FOLDER}", place=place, id=id)
            return found if isinstance(inside, Finding) else inside
        return found

    def _named(self, *targets: str) -> str:
        return " or ".join(f"'{self.meaning.columns[one]}'" for one in targets if one in self.meaning.columns)

    def utterance(self, place: str, id: str, audio: str, cells: Mapping[str, Any]) -> Utterance:
        """One row whose recording is found; cells that mean nothing are None. Raises CellError."""
        start, seconds = self._span(cells)
        channel = self._text(cells, "channel")
        return Utterance(
            id=id,
            audio=audio,
            place=place,
            start=start,
            seconds=seconds,
            channel=None if channel is None else channel_of(channel),
            text=one_line(self._text(cells, "text")),
            speaker=self._text(cells, "speaker"),
            split=self.split or self._text(cells, "split"),
            labels=self.labels.read(cells),
            extra=self.further.read(cells),
        )

    def _span(self, cells: Mapping[str, Any]) -> tuple[float, float | None]:
        start, end, seconds = (self._time(cells, name) for name in ("start", "end", "seconds"))
        return span_of(start or 0.0, end, seconds)

    def _time(self, cells: Mapping[str, Any], target: str) -> float | None:
        for name, unit in ((target, 1.0), (f"{target}_ms", 0.001)):
            column = self.meaning.columns.get(name)
            if column is not None and cells.get(column) is not None:
                return round(seconds_of(cells[column], unit), 9)
        return None

    def _text(self, cells: Mapping[str, Any], target: str) -> str | None:
        column = self.meaning.columns.get(target)
        return None if column is None or cells.get(column) is None else text_of(cells[column])


def channel_of(text: str) -> int:
    """A channel counted from 0, or one of a pair by its name."""
    known = _CHANNELS.get(text.casefold())
    if known is None and not text.isdecimal():
        raise CellError("bad-channel", f"'{text}' is not a channel", "Count channels from 0.")
    return int(text) if known is None else known


def one_line(text: str | None) -> str | None:
    """A text without the line ends that a cell or a file may hold."""
    return None if text is None else re.sub(r"\s*[\r\n]+\s*", " ", text)
