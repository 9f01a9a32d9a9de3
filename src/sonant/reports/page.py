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
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    kind = ' class="sortable"' if is_sortable else ""
    return f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


class Ready(str):
    """HTML in a table cell that must not be escaped."""

    __slots__ = ()


def player(audio: bytes, kind: str = "audio/wav") -> Ready:
    """A player with the sound inside the page."""
    return Ready(f'<audio controls preload="none" src="data:{kind};base64,{base64.b64encode(audio).decode()}"></audio>')


def _cell(value: Any) -> str:
    if isinstance(value, Ready):
        return f"<td>{value}</td>"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{escape('' if value is None else str(value))}</td>"
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 100 else f"{value:,.1f}"
    return f'<td class="number" data-value="{value}">{shown}</td>'
