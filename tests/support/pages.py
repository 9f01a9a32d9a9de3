"""Pages of documentation, taken apart: code blocks, links, commands of Sonant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_COMMAND = re.compile(r"\bsonant (?P<verb>[a-z]+)\b(?P<rest>[^\n`|;&]*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int  # of the page, where the code begins


@dataclass(frozen=True)
class Page:
    path: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def blocks(self) -> list[Block]:
        text = self.text
        return [
            Block(found["language"], found["code"], text.count("\n", 0, found.start()) + 2)
            for found in _FENCE.finditer(text)
        ]

    @property
    def links(self) -> list[str]:
        """Where the page points to, addresses of the web left out."""
        targets = [found["target"] for found in _LINK.finditer(_FENCE.sub("", self.text))]
        return [target for target in targets if not target.startswith(("http://", "https://", "mailto:"))]

    @property
    def anchors(self) -> set[str]:
        headings = _HEADING.findall(_FENCE.sub("", self.text))
        return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Every `sonant VERB` with its options, in the shell and between backquotes; continued lines are one."""
        of_shell = [block.code for block in self.blocks if block.language != "python"]
        for part in of_shell + re.findall(r"`([^`\n]+)`", _FENCE.sub("", self.text)):
            for found in _COMMAND.finditer(part.replace("\\\n", " ")):
                yield found["verb"], _OPTION.findall(found["rest"].partition(" # ")[0])

    def lone_options(self) -> set[str]:
        """Options that a sentence names by themselves, as in `--pack`; tables may hold those of other programs."""
        inline = re.findall(r"`(--[a-z][^`\n]*)`", re.sub(r"^\|.*$", "", _FENCE.sub("", self.text), flags=re.MULTILINE))
        return {option for part in inline for option in _OPTION.findall(part)}


def pages(*folders: str) -> list[Page]:
    return [Page(path) for folder in folders for path in sorted((ROOT / folder).rglob("*.md"))]
