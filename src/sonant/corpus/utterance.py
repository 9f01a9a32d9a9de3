"""An utterance as a source describes it, before anything of it has been checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """A stretch of one recording with its annotations, and the place in the source that speaks of it."""

    id: str
    audio: str | None  # a local path or URI, or an address inside a container; None for a text document
    place: str  # "recordings.csv:42": where a user looks to mend it
    start: float = 0.0  # seconds into the recording
    seconds: float | None = None  # None: to the end of the recording
    channel: int | None = None  # None: the mean of all channels
    text: str | None = None
    speaker: str | None = None
    split: str | None = None
    labels: dict[str, Any] = field(default_factory=dict)  # a number, a string, a list of strings, or None each
    tokens: tuple[int, ...] | None = None  # label ids, when a source has only those
    sample_rate: int | None = None  # only where the container itself cannot tell (bare arrays of floats)
    extra: dict[str, Any] = field(default_factory=dict)  # further columns, kept as they are


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A fault in somebody's data: a rule, a place, what is wrong and what to do."""

    rule: str  # a short name in kebab-case, e.g. "end-beyond-recording"
    place: str
    problem: str  # what was found and what is required, one sentence
    action: str  # what to do, in the imperative
    id: str = ""  # the utterance, where one is concerned
    is_error: bool = True  # a warning is told and counted; an error rejects the utterance

    def __str__(self) -> str:
        return f"{self.place}: {self.problem} {self.action}"


class Source(Protocol):
    """Somebody's layout. Sources are cheap to make; all reading happens while iterating."""

    name: str  # what `--from` calls it, e.g. "kaldi"

    def rows(self) -> Iterator[Utterance | Finding]:
        """Every utterance, those of one recording next to each other, and every fault of the layout itself.

        Streams: never holds the audio of more than one recording, nor more than light rows in memory.
        """
        ...

    def vocabulary(self) -> list[str] | None:
        """The symbols behind `tokens`, where a source has label ids only."""
        ...


Rows = Iterable[Utterance | Finding]
