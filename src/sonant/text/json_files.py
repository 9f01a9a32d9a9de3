"""Text and JSON files whose faults are told with file and line."""

from __future__ import annotations

import json
from typing import Any

from sonant.base import storage
from sonant.base.errors import TextError


def read_text(location: str) -> str:
    try:
        return storage.read_bytes(location).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(location, f"byte {error.start} is not UTF-8.", "Save the file as UTF-8.") from error


def read_json(location: str) -> Any:
    return parse_json(location, read_text(location))


def parse_json(location: str, text: str) -> Any:
    """The value; a key that stands twice is refused, since one of its values would be lost in silence."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in values if keys.count(key) > 1)
            raise TextError(location, f"'{twice}' stands there twice.", "Remove one of the two.")
        return values

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        problem = f"this is not JSON: {error.msg}."
        raise TextError(f"{location}:{error.lineno}", problem, "Check commas and quotes there.") from error
