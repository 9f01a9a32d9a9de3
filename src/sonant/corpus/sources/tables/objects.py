"""Tables in JSON: one object a line, a list of objects, or an object of objects by key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sonant.base.errors import SourceError
from sonant.corpus.sources.lines import Text
from sonant.corpus.sources.tables.tabular import Row, Table
from sonant.corpus.utterance import Finding

_FORMS = 'Write one object a line, a list of objects, or {"key": {…}, …}.'
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


def open_objects(text: Text) -> Table:
    """The table in a JSON file; its columns are the keys of all objects, in the order of appearance."""

    rows = rows_of(text)
    columns = dict.fromkeys(name for row in rows() if isinstance(row, Row) for name in row.cells)
    return Table(text.location, tuple(columns), rows, True, text.findings)


def rows_of(text: Text) -> Callable[[], Iterator[Row | Finding]]:
    """What reads the objects of a JSON file anew each time, and what is wrong with its lines."""
    return partial(_by_line if _is_by_line(text) else _whole, text)


def _is_by_line(text: Text) -> bool:
    """Whether the first line that says anything is an object by itself, and not one that holds all the others."""
    first = next((line.strip() for line in text if line.strip()), "")
    try:
        value = json.loads(first)
    except ValueError:
        if first.startswith("["):
            return False
        is_closed = first.startswith("{") and first.endswith("}")
        return is_closed or text.location.casefold().removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    return isinstance(value, dict) and not (value and all(isinstance(one, dict) for one in value.values()))


def _by_line(text: Text) -> Iterator[Row | Finding]:
    for number, line in text.numbered():
        if not line.strip():
            continue
        place = f"{text.location}:{number}"
        try:
            value = json.loads(line)
            yield Row(place, value) if isinstance(value, dict) else _no_object(place, value)
        except ValueError as error:
            yield _bad_line(place, f"the line is not JSON: {error}.")


def _whole(text: Text) -> Iterator[Row | Finding]:
    """Walks through the outermost list or object, so that each row knows its line."""
    content = text.read()
    position = _skip(content, 0)
    if content[position : position + 1] not in ("[", "{"):
        raise SourceError(f"{text.location}:1", "this is not JSON.", _FORMS)
    line, counted = 1, 0
    try:
        for start, key, value in _members(content, position):
            line, counted = line + content.count("\n", counted, start), start
            place = f"{text.location}:{line}"
            if key is not None:
                yield Row(place, {"key": key} | (value if isinstance(value, dict) else {"value": value}))
            else:
                yield Row(place, value) if isinstance(value, dict) else _no_object(place, value)
    except json.JSONDecodeError as error:
        raise SourceError(f"{text.location}:{error.lineno}", f"this is not JSON: {error.msg}.", _FORMS) from error


def _members(content: str, position: int) -> Iterator[tuple[int, str | None, Any]]:
    """Where each member of a list or object begins, its key if it has one, and its value."""
    is_object, close = content[position] == "{", "}" if content[position] == "{" else "]"
    position = _skip(content, position + 1)
    if content[position : position + 1] == close:
        return
    while True:
        start, key = position, None
        if is_object:
            key, position = _DECODER.raw_decode(content, position)
            position = _after(content, position, ":")
        value, position = _DECODER.raw_decode(content, position)
        yield start, key, value
        position = _skip(content, position)
        if content[position : position + 1] == close:
            return
        position = _after(content, position, ",")


def _after(content: str, position: int, sign: str) -> int:
    position = _skip(content, position)
    if content[position : position + 1] != sign:
        raise json.JSONDecodeError(f"'{sign}' is missing", content, position)
    return _skip(content, position + 1)


def _skip(content: str, position: int) -> int:
    found = _SPACE.match(content, position)
    assert found
    return found.end()


def _no_object(place: str, value: Any) -> Finding:
    return _bad_line(place, f"a row is an object, but {json.dumps(value)[:40]} was found.")


def _bad_line(place: str, problem: str) -> Finding:
    return Finding(rule="bad-line", place=place, problem=problem, action=_FORMS)
