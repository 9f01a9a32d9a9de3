"""What one cell of somebody's table says: text, a number, a time, or nothing."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from sonant.corpus.utterance import Finding

# A decimal comma is a decimal point; "007" is a name, not a number.
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(?:[.,]\d*)?|[.,]\d+)(?:[eE][-+]?\d+)?")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d{1,2}(?:[.,]\d*)?)")
_WITH_UNIT = re.compile(r"([\d.,]+)\s*(ms|s|sec|min)\.?")
_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "min": 60.0}


class CellError(Exception):
    """A cell that does not hold what its column is for."""

    def __init__(self, rule: str, problem: str, action: str) -> None:
        super().__init__(problem)
        self.rule, self.problem, self.action = rule, problem, action

    @classmethod
    def bad_time(cls, problem: str) -> CellError:
        return cls("bad-time", problem, "Correct it: times are seconds or h:mm:ss.mmm.")

    def finding(self, place: str, id: str) -> Finding:
        """The fault with its place."""
        return Finding(rule=self.rule, place=place, problem=f"'{id}': {self.problem}.", action=self.action, id=id)


def text_of(cell: Any) -> str:
    """A cell as a person would write it: 7.0 from a spreadsheet is "7"."""
    if isinstance(cell, str):
        return cell.strip()
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, dict | list) else str(cell)


def number_of(cell: Any) -> float | None:
    """The number that a cell is, or None when it is none."""
    if isinstance(cell, bool):
        return None
    if isinstance(cell, int | float):
        return float(cell) if math.isfinite(cell) else None
    text = text_of(cell)
    return float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else None


def seconds_of(cell: Any, unit: float = 1.0) -> float:
    """A time in seconds, from a number of `unit` seconds, `1:02:03.5`, `350 ms` or a spreadsheet's time of day."""
    if isinstance(cell, datetime.timedelta):
        return cell.total_seconds()
    if isinstance(cell, datetime.time):
        return cell.hour * 3600 + cell.minute * 60 + cell.second + cell.microsecond / 1e6
    number = number_of(cell)
    if number is not None:
        return number * unit
    text = text_of(cell)
    if found := _CLOCK.fullmatch(text):
        hours, minutes, seconds = int(found[1] or 0), int(found[2]), float(found[3].replace(",", "."))
        if seconds < 60 and (minutes < 60 or not found[1]):
            return hours * 3600 + minutes * 60 + seconds
    if (found := _WITH_UNIT.fullmatch(text)) and (number := number_of(found[1])) is not None:
        return number * _UNITS[found[2]]
    raise CellError.bad_time(f"'{text}' is not a time")


def span_of(start: float, end: float | None = None, seconds: float | None = None) -> tuple[float, float | None]:
    """Start and duration of an utterance; the duration is None where neither it nor an end is told."""
    if start < 0:
        raise CellError.bad_time(f"it starts at {start:g} s, before its recording")
    if seconds is None and end is not None:
        seconds = round(end - start, 9)
        if seconds <= 0:
            raise CellError.bad_time(f"it ends at {end:g} s, but starts at {start:g} s")
    if seconds is not None and seconds <= 0:
        raise CellError.bad_time(f"it lasts {seconds:g} s")
    return start, seconds


def present(cells: Mapping[str, Any], missing: Collection[str]) -> dict[str, Any]:
    """The same cells with None for every value that means "no value"."""
    return {name: None if is_missing(cell, missing) else cell for name, cell in cells.items()}


def is_missing(cell: Any, missing: Collection[str]) -> bool:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return True
    return not isinstance(cell, dict | list) and text_of(cell) in missing
