"""Tables for a terminal: aligned columns, numbers to the right, nothing that a file or a pipe would choke on."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any


def text_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, indent: str = "  ", widest: int = 60) -> str:
    """Lines without an end of line behind the last; a cell longer than `widest` is cut."""
    body = [list(row) for row in rows]
    cells = [[_shown(value, widest) for value in row] for row in [list(columns), *body]]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    is_number = [all(_is_number(row[at]) for row in body) and bool(body) for at in range(len(columns))]
    lines = []
    for row in cells:
        padded = (
            " " * (width - _width(cell)) + cell if right else cell + " " * (width - _width(cell))
            for cell, width, right in zip(row, widths, is_number, strict=True)
        )
        lines.append((indent + "  ".join(padded)).rstrip())
    return "\n".join(lines)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _shown(value: Any, widest: int) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 1e6 else f"{value:.3g}"
    shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    shown = " ".join(shown.split())
    return shown if len(shown) <= widest else shown[: widest - 1] + "…"


def _width(cell: str) -> int:
    """Columns on the screen: East Asian characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in cell
    )
