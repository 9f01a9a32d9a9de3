"""`metrics.jsonl`: a line for each stretch of training and each validation, while the run goes on.

    {"kind": "train", "step": 50, "loss": 1.93, "rate": 0.0005, …, "clock": {"seconds": 12.1, …}}

All but `clock` is a function of the settings and the data. A state remembers how far the file reached, and going on
from it cuts off what lies behind: no step is missing and none is there twice.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from sonant.base import storage


class MetricsLog:
    """Appends lines; what is written can be read at once."""

    def __init__(self, location: str) -> None:
        self.location = location

    def size(self) -> int:
        return os.path.getsize(self.location) if os.path.exists(self.location) else 0

    def cut(self, size: int) -> None:
        """Forgets all that was written behind this place."""
        with storage.storage_errors(self.location), open(self.location, "ab") as file:
            file.truncate(min(size, file.tell()))

    def write(self, kind: str, step: int, figures: Mapping[str, Any], clock: Mapping[str, float]) -> None:
        line = {"kind": kind, "step": step, **{name: _plain(value) for name, value in figures.items()}}
        line["clock"] = {name: _plain(round(value, 4)) for name, value in clock.items()}
        with storage.storage_errors(self.location), open(self.location, "ab") as file:
            file.write(json.dumps(line, ensure_ascii=False).encode("utf-8") + b"\n")
            file.flush()
            os.fsync(file.fileno())


def read_log(location: str) -> list[dict[str, Any]]:
    """The lines of a log; a last one that a kill cut short is left out."""
    lines: list[dict[str, Any]] = []
    for line in storage.read_bytes(location).splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: such numbers are null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
