"""One HTML file that needs nothing beside itself: no request leaves it, and it opens from a disk in ten years.

page = Page("Corpus my-corpus", "0.5 hours, 812 utterances")
page.add(section("Splits", table(["split", "hours"], [["train", 0.35]]), bars({"train": 0.35})))
storage.write_text("report.html", page.html())
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

Block = str  # HTML that is safe to put into a page


class Page:
    """A title, a line below it, and blocks."""

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title, self.subtitle = title, subtitle
        self._blocks: list[Block] = []

    def add(self, *blocks: Block) -> Page:
        self._blocks.extend(blocks)
        return self

    def html(self) -> str:
        style = (resources.files("sonant.reports") / "page.css").read_text(encoding="utf-8")
        script = (resources.files("sonant.reports") / "page.js").read_text(encoding="utf-8")
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
            f"<header><h1>{escape(self.title)}</h1><p>{escape(self.subtitle)}</p></header>\n"
            + "\n".join(self._blocks)
            + f"\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
        )


def section(heading: str, *blocks: Block, note: str = "") -> Block:
    """A card with a heading; `note` is the sentence that says how to read it."""
    hint = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(heading)}</h2>{hint}{''.join(blocks)}</section>"


def side_by_side(*blocks: Block) -> Block:
    """Blocks in columns, below each other where the screen is narrow."""
    return '<div class="columns">' + "".join(f"<div>{block}</div>" for block in blocks) + "</div>"


def titled(title: str, block: Block) -> Block:
    """A block under a small title."""
    return f"<h3>{escape(title)}</h3>{block}"


def figures(values: Mapping[str, Any]) -> Block:
    """The few numbers that a reader looks for first, large."""
    cells = "".join(
        f"<div><b>{escape(str(value))}</b><span>{escape(name)}</span></div>" for name, value in values.items()
    )
    return f'<div class="figures">{cells}</div>'


def text(sentence: str) -> Block:
    return f"<p>{escape(sentence)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, is_sortable: bool = True) -> Block:
    """Numbers are set to the right; a cell may be a ready block (a player), marked by `ready`."""
    lines = [list(row) for row in rows]
    numeric = [bool(lines) and all(_is_number(row[at]) for row in lines) for at in range(len(columns))]
    head = "".join(
        f'<th scope="col"{" class=number" if right else ""}>{escape(name)}</th>'
        for name, right in zip(columns, numeric, strict=True)
    )
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in lines)
    kind = ' class="sortable"' if is_sortable else ""
    return f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


class Ready(str):
    """HTML in a table cell that must not be escaped."""

    __slots__ = ()


def player(audio: bytes, kind: str = "audio/wav") -> Ready:
    """A player with the sound inside the page."""
    return Ready(
        f'<audio controls preload="metadata" src="data:{kind};base64,{base64.b64encode(audio).decode()}"></audio>'
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if isinstance(value, Ready):
        return f"<td>{value}</td>"
    if not _is_number(value):
        return f"<td>{escape('' if value is None else str(value))}</td>"
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 100 else f"{value:,.1f}"
    return f'<td class="number" data-value="{value}">{shown}</td>'
