"""What a recogniser wrote of a recording, with times, and the files that people want of it: captions, tables, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from sonant.decoding.hypotheses import Hypothesis
from sonant.inference.captions import Caption, captions_of

_OPTIONAL = ("alternatives", "tokens", "lines", "skipped", "score", "name")


@dataclass(frozen=True)
class Word:
    text: str
    start: float  # seconds into the recording
    end: float
    confidence: float  # from 0 to 1


@dataclass(frozen=True)
class Line:
    """A line of a given text, and how well it fits."""

    number: int  # in the text, from 1
    text: str
    start: float
    end: float
    confidence: float
    score: float  # nats a token by which it is less likely than the best path, below 0


@dataclass(frozen=True)
class Alternative:
    """One answer: what the recogniser thinks of it, and how sure its symbols are."""

    text: str
    score: float  # nats, of recogniser and guide together
    confidence: float


@dataclass(frozen=True)
class Transcript:
    audio: str
    seconds: float
    text: str
    confidence: float
    words: tuple[Word, ...]
    alternatives: tuple[Alternative, ...] = ()  # the best first, the text itself among them
    tokens: tuple[Word, ...] = ()  # of an alignment: the symbols of the model
    lines: tuple[Line, ...] = ()  # of an alignment: those of its text, where there are several
    skipped: tuple[str, ...] = ()  # words of a given text without a letter that the model could write
    score: float | None = None  # of a given text: nats a token by which it is less likely than the best path, below 0
    name: str = ""  # what its results are called: the id of an utterance

    @classmethod
    def of(cls, audio: str, seconds: float, answers: Sequence[Hypothesis], frame_seconds: float) -> Transcript:
        """From the answers of a decoder, best first; where there is none, nothing was said."""
        best = answers[0]
        words = tuple(
            Word(word.text, word.start * frame_seconds, min(word.end * frame_seconds, seconds), word.confidence)
            for word in best.words
        )
        others = tuple(Alternative(one.text, one.score, one.confidence) for one in answers)
        return cls(audio, seconds, best.text, best.confidence, words, others if len(answers) > 1 else ())

    def as_dict(self) -> dict[str, Any]:
        """Plain values, times to the millisecond."""
        values = asdict(self)
        told = {name: value for name, value in values.items() if name not in _OPTIONAL or value not in ((), None, "")}
        rounded: dict[str, Any] = _rounded(told)
        return rounded


def captions(transcript: Transcript) -> list[Caption]:
    """Where the text was given in lines, each of them begins one; where words outnumber what white space parts, none
    stands between them."""
    gap = " " if len(transcript.text.split()) >= len(transcript.words) else ""
    begins = frozenset(line.start for line in transcript.lines)
    return captions_of(transcript.words, transcript.seconds, begins=begins, gap=gap)


def as_txt(transcript: Transcript) -> str:
    return transcript.text + "\n"


def as_json(transcript: Transcript) -> str:
    return json.dumps(transcript.as_dict(), ensure_ascii=False, indent=2) + "\n"


def as_srt(transcript: Transcript) -> str:
    """SubRip: a number, a stretch of time, a text."""
    blocks = [
        f"{number}\n{_clock(one.start, ',')} --> {_clock(one.end, ',')}\n{one.text}\n"
        for number, one in enumerate(captions(transcript), start=1)
    ]
    return "\n".join(blocks)


def as_vtt(transcript: Transcript) -> str:
    """WebVTT, in which some signs have a meaning."""
    blocks = [
        f"{_clock(one.start, '.')} --> {_clock(one.end, '.')}\n{escape(one.text, quote=False)}\n"
        for one in captions(transcript)
    ]
    return "\n".join(["WEBVTT\n", *blocks])


def as_ctm(transcript: Transcript) -> str:
    """NIST's time-marked words: recording, channel, start, duration, word, confidence."""
    name = _joined(transcript.name or transcript.audio.rsplit("/", 1)[-1])
    return "".join(
        f"{name} 1 {word.start:.3f} {word.end - word.start:.3f} {_joined(word.text)} {word.confidence:.3f}\n"
        for word in transcript.words
    )


def as_textgrid(transcript: Transcript) -> str:
    """Praat's long text form: a tier of words, and where they are known of tokens and lines; pauses are empty."""
    tiers: Mapping[str, Sequence[Word | Line]] = {
        "lines": transcript.lines,
        "words": transcript.words,
        "tokens": transcript.tokens,
    }
    told = {name: _intervals(spoken, transcript.seconds) for name, spoken in tiers.items() if spoken or name == "words"}
    end = f"{transcript.seconds:.6f}"
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0", f"xmax = {end}"]
    lines += ["tiers? <exists>", f"size = {len(told)}", "item []:"]
    for number, (name, intervals) in enumerate(told.items(), start=1):
        lines += [f"    item [{number}]:", '        class = "IntervalTier"', f'        name = "{name}"']
        lines += ["        xmin = 0", f"        xmax = {end}", f"        intervals: size = {len(intervals)}"]
        for place, (start, behind, text) in enumerate(intervals, start=1):
            quoted = text.replace('"', '""')
            lines += [
                f"        intervals [{place}]:",
                f"            xmin = {start:.6f}",
                f"            xmax = {behind:.6f}",
            ]
            lines.append(f'            text = "{quoted}"')
    return "\n".join(lines) + "\n"


def _intervals(spoken: Sequence[Word | Line], seconds: float) -> list[tuple[float, float, str]]:
    """They cover the recording without a gap, as Praat wants it."""
    found, behind = [], 0.0
    for one in spoken:
        if one.start > behind:
            found.append((behind, one.start, ""))
        if one.end > one.start:
            found.append((one.start, one.end, one.text))
        behind = one.end
    if behind < seconds or not found:
        found.append((behind, seconds, ""))
    return found


def _joined(text: str) -> str:
    """White space would begin another column."""
    return "_".join(text.split())


FORMATS: Mapping[str, Callable[[Transcript], str]] = {
    "txt": as_txt,
    "json": as_json,
    "srt": as_srt,
    "vtt": as_vtt,
    "ctm": as_ctm,
    "TextGrid": as_textgrid,
}


def _clock(seconds: float, point: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{milliseconds // 1000:02}{point}{milliseconds % 1000:03}"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3) + 0.0  # never -0.0
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return list(map(_rounded, value)) if isinstance(value, list | tuple) else value
