"""Subtitles (.srt, .vtt) beside recordings: every cue is an utterance; WebVTT may name its speaker."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from sonant.corpus.sources import intervals
from sonant.corpus.sources.intervals import Annotated, Interval, Tier
from sonant.corpus.sources.lines import decode_text
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.cells import CellError, seconds_of
from sonant.corpus.utterance import Finding, Utterance

_EXTENSIONS = (".srt", ".vtt")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
_MARKUP = re.compile(r"</?[A-Za-z0-9][^<>]*>|<\d[\d:.]*>|\{\\[^}]*\}")  # <i>, </font>, <00:01.000>, {\an8}
_COMMENT = re.compile(r"(NOTE|STYLE|REGION)(\s|$)")


class SubtitlesSource:
    """SubRip and WebVTT files, of one or several languages."""

    name: ClassVar[str] = "subtitles"
    uses: ClassVar[frozenset[str]] = frozenset({"audio", "encoding", "split"})

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        return intervals.has_files(location, names, _EXTENSIONS)

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        return intervals.utterances(self.location, self.options, _EXTENSIONS, read_subtitles)

    def vocabulary(self) -> list[str] | None:
        return None


def read_subtitles(location: str, encoding: str) -> Annotated:
    """The cues of a file in its order; settings, styles and notes are passed over."""
    text = decode_text(location, encoding)
    findings, cues = list(text.findings), []
    for block in _blocks(text.numbered()):
        if _COMMENT.match(block[0][1]):
            continue
        timing = next((index for index, (_, line) in enumerate(block) if "-->" in line), None)
        if timing is None:
            findings += [] if block[0][1].startswith("WEBVTT") else [_no_time(location, *block[0])]
            continue
        number, line = block[timing]
        try:
            start, end = _times(line)
        except CellError as error:
            findings.append(error.finding(f"{location}:{number}", block[0][1].strip()))
            continue
        words = "\n".join(line for _, line in block[timing + 1 :])
        voices = {html.unescape(name.strip()) for name in _VOICE.findall(words)}
        speaker = voices.pop() if len(voices) == 1 else None
        cues.append(Interval(start=start, end=end, text=_plain(words), line=number, speaker=speaker))
    return Annotated(tiers=[Tier(name="", intervals=cues)], findings=findings)


def _blocks(lines: Iterator[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Lines between blank ones; a cue whose blank line was forgotten still begins at its times."""
    block: list[tuple[int, str]] = []
    for number, line in lines:
        if not line.strip():
            if block:
                yield block
            block = []
            continue
        if "-->" in line and any("-->" in earlier for _, earlier in block):
            has_number = len(block) > 1 and block[-1][1].strip().isdecimal()
            cut = len(block) - has_number
            yield block[:cut]
            block = block[cut:]
        block.append((number, line))
    if block:
        yield block


def _times(line: str) -> tuple[float, float]:
    start, _, rest = line.partition("-->")
    end = rest.split()
    return seconds_of(start), seconds_of(end[0] if end else "")


def _plain(words: str) -> str:
    """The text without markup; `&amp;` is `&`."""
    return html.unescape(_MARKUP.sub("", words)).replace("\u200e", "").replace("\xa0", " ").strip()


def _no_time(location: str, number: int, line: str) -> Finding:
    return Finding(
        rule="bad-time",
        place=f"{location}:{number}",
        problem=f"'{line.strip()[:40]}' stands without times.",
        action="Write a line with times before it: 00:00:01.000 --> 00:00:02.500",
    )
