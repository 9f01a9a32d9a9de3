"""ELAN files (.eaf) beside recordings: tiers of aligned annotations, and tiers that refer to those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar
from xml.parsers import expat

from sonant.base.errors import SourceError
from sonant.corpus.sources import intervals
from sonant.corpus.sources.intervals import Annotated, Interval, Tier
from sonant.corpus.sources.lines import decode_text
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.utterance import Finding, Utterance

_EXTENSIONS = (".eaf",)
_MEND = "Open the file in ELAN and save it again."


class ElanSource:
    """The annotations of the first tier, and of those of the same type that are about other participants."""

    name: ClassVar[str] = "elan"
    uses: ClassVar[frozenset[str]] = frozenset({"tiers", "audio", "encoding", "split"})

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        return intervals.has_files(location, names, _EXTENSIONS)

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        return intervals.utterances(self.location, self.options, _EXTENSIONS, read_elan)

    def vocabulary(self) -> list[str] | None:
        return None


@dataclass
class _Annotation:
    line: int
    slots: tuple[str, str] | None  # of an aligned annotation
    parent: str  # of one that refers to another
    text: str = ""


@dataclass
class _Tier:
    name: str
    speaker: str | None
    kind: str  # its linguistic type
    is_top: bool
    annotations: list[_Annotation] = field(default_factory=list)


class _Document:
    """What the XML says, gathered element by element so that lines are known."""

    def __init__(self, location: str, content: str) -> None:
        self.tiers: list[_Tier] = []
        self.times: dict[str, float] = {}  # slot -> seconds
        self.annotations: dict[str, _Annotation] = {}
        self.media = ""
        self._words: list[str] | None = None  # of the value that is being read
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._hear
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            problem = f"this is not XML: {expat.ErrorString(error.code)}."
            raise SourceError(
                f"{location}:{error.lineno}", problem, "Open the file in ELAN and save it again."
            ) from error

    def _start(self, element: str, facts: dict[str, str]) -> None:
        if element == "MEDIA_DESCRIPTOR" and not self.media:
            self.media = facts.get("RELATIVE_MEDIA_URL") or facts.get("MEDIA_URL", "")
        elif element == "TIME_SLOT" and "TIME_VALUE" in facts:
            self.times[facts["TIME_SLOT_ID"]] = int(facts["TIME_VALUE"]) / 1000  # milliseconds
        elif element == "TIER":
            self.tiers.append(_tier_from(facts))
        elif element in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION"):
            is_aligned = element == "ALIGNABLE_ANNOTATION"
            slots = (facts["TIME_SLOT_REF1"], facts["TIME_SLOT_REF2"]) if is_aligned else None
            found = _Annotation(self._parser.CurrentLineNumber, slots, facts.get("ANNOTATION_REF", ""))
            self.annotations[facts["ANNOTATION_ID"]] = found
            self.tiers[-1].annotations.append(found)
        elif element == "ANNOTATION_VALUE":
            self._words = []

    def _hear(self, characters: str) -> None:
        if self._words is not None:
            self._words.append(characters)

    def _end(self, element: str) -> None:
        if element == "ANNOTATION_VALUE" and self._words is not None:
            self.tiers[-1].annotations[-1].text = "".join(self._words).strip()
            self._words = None

    def aligned(self, annotation: _Annotation) -> _Annotation:
        """The annotation with times that this one refers to in the end."""
        steps = 0
        while annotation.slots is None and annotation.parent in self.annotations and steps < 20:
            annotation, steps = self.annotations[annotation.parent], steps + 1
        return annotation


def _tier_from(facts: dict[str, str]) -> _Tier:
    return _Tier(
        name=facts.get("TIER_ID", ""),
        speaker=facts.get("PARTICIPANT") or None,
        kind=facts.get("LINGUISTIC_TYPE_REF", ""),
        is_top="PARENT_REF" not in facts,
    )


def read_elan(location: str, encoding: str) -> Annotated:
    """The tiers of a file, those that refer to others last."""
    text = decode_text(location, encoding)
    try:
        document = _Document(location, text.read())
    except (KeyError, IndexError, ValueError) as error:
        problem = f"this is no ELAN file: {error} is missing or wrong."
        raise SourceError(location, problem, _MEND) from error
    findings, tiers, grouped = list(text.findings), [], set()
    for tier in sorted(document.tiers, key=lambda tier: not tier.is_top):
        # Several people who are spoken of in one way; a second tier of the same person says something else.
        is_first = tier.is_top and tier.speaker is not None and (tier.kind, tier.speaker) not in grouped
        grouped.add((tier.kind, tier.speaker))
        spans = [_interval(document, tier, parts, location) for parts in _by_time(document, tier)]
        findings += [one for one in spans if isinstance(one, Finding)]
        found = [one for one in spans if isinstance(one, Interval)]
        tiers.append(Tier(name=tier.name, intervals=found, group=tier.kind if is_first else ""))
    return Annotated(tiers=tiers, audio=document.media, findings=findings)


def _by_time(document: _Document, tier: _Tier) -> list[list[_Annotation]]:
    """The annotations of a tier; words that refer to one stretch are taken together."""
    together: dict[int, list[_Annotation]] = {}
    for annotation in tier.annotations:
        together.setdefault(id(document.aligned(annotation)), []).append(annotation)
    return list(together.values())


def _interval(document: _Document, tier: _Tier, parts: list[_Annotation], location: str) -> Interval | Finding:
    text, aligned = " ".join(part.text for part in parts if part.text), document.aligned(parts[0])
    start, end = (document.times.get(slot) for slot in aligned.slots or ("", ""))
    if start is not None and end is not None:
        return Interval(start=start, end=end, text=text, line=parts[0].line, speaker=tier.speaker)
    return Finding(
        rule="bad-time",
        place=f"{location}:{parts[0].line}",
        problem=f"the annotation '{text[:40]}' of the tier '{tier.name}' has no times of its own.",
        action="Align it in ELAN, or name another tier with --tiers.",
    )
