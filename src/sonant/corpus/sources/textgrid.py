"""Praat TextGrids beside recordings, in the long or the short text form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sonant.base.errors import SourceError
from sonant.corpus.sources import intervals
from sonant.corpus.sources.intervals import Annotated, Interval, Tier
from sonant.corpus.sources.lines import decode_text, open_bytes
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.utterance import Finding, Utterance

_EXTENSIONS = (".textgrid",)
# What Praat itself reads: quoted strings, and numbers and flags that stand alone; all else is decoration.
_TOKEN = re.compile(r'"((?:[^"]|"")*)"|(?<!\S)([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?!\S)|<(exists|absent)>|![^\n]*')


class TextGridSource:
    """The intervals of one tier, or of several that belong to several speakers."""

    name: ClassVar[str] = "textgrid"
    uses: ClassVar[frozenset[str]] = frozenset({"tiers", "audio", "encoding", "split"})

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        return intervals.has_files(location, names, _EXTENSIONS)

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        return intervals.utterances(self.location, self.options, _EXTENSIONS, read_textgrid)

    def vocabulary(self) -> list[str] | None:
        return None


@dataclass(frozen=True)
class _Token:
    value: str | float
    line: int


def read_textgrid(location: str, encoding: str) -> Annotated:
    """The interval tiers of a file; point tiers have no duration and are passed over."""
    with open_bytes(location) as file:
        if file.read(12) == b"ooBinaryFile":
            raise SourceError(location, "this TextGrid is binary.", "Save it from Praat as a text file.")
    text = decode_text(location, encoding)
    tokens = _Tokens(location, text.read())
    if not tokens.string().startswith("ooTextFile") or tokens.string() != "TextGrid":
        raise SourceError(f"{location}:1", "this is no TextGrid in text form.", "Save it from Praat as a text file.")
    tokens.number(), tokens.number()  # its own beginning and end
    if tokens.string() == "absent":
        return Annotated(tiers=())
    tiers = [tier for tier in (_tier(tokens) for _ in range(int(tokens.number()))) if tier]
    return Annotated(tiers=tiers, findings=text.findings)


def _tier(tokens: _Tokens) -> Tier | None:
    is_interval, name = tokens.string() == "IntervalTier", tokens.string()
    tokens.number(), tokens.number()
    count = int(tokens.number())
    if not is_interval:
        for _ in range(count):
            tokens.number(), tokens.string()
        return None
    return Tier(name=name, intervals=[_interval(tokens) for _ in range(count)])


def _interval(tokens: _Tokens) -> Interval:
    start, line = tokens.number(), tokens.line
    end, text = tokens.number(), tokens.string()
    return Interval(start=start, end=end, text=text, line=line)


class _Tokens:
    """The tokens of a file, each of the kind that must come next."""

    def __init__(self, location: str, content: str) -> None:
        self.location, self.line = location, 1
        self._found = self._tokens(content)

    def string(self) -> str:
        value = self._next("text in quotes")
        if isinstance(value, float):
            raise self._unexpected("text in quotes", f"the number {value:g}")
        return value

    def number(self) -> float:
        value = self._next("a number")
        if isinstance(value, str):
            raise self._unexpected("a number", f"'{value[:40]}'")
        return value

    def _next(self, wanted: str) -> str | float:
        token = next(self._found, None)
        if token is None:
            raise self._unexpected(wanted, "the end of the file")
        self.line = token.line
        return token.value

    def _unexpected(self, wanted: str, found: str) -> SourceError:
        problem = f"{wanted} is required here, but {found} was found."
        return SourceError(f"{self.location}:{self.line}", problem, "Open the file in Praat and save it again.")

    @staticmethod
    def _tokens(content: str) -> Iterator[_Token]:
        line, counted = 1, 0
        content = content.replace("\r\n", "\n").replace("\r", "\n")
        for found in _TOKEN.finditer(content):
            line, counted = line + content.count("\n", counted, found.start()), found.start()
            quoted, number, flag = found.groups()
            if quoted is not None:
                yield _Token(quoted.replace('""', '"'), line)
            elif number is not None:
                yield _Token(float(number), line)
            elif flag is not None:
                yield _Token(flag, line)
