"""What the studio recorded, as a source: the truth of every utterance becomes its annotations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import ClassVar

from sonant.audio.address import Address
from sonant.base import storage
from sonant.corpus.demo.studio import TRUTH, read_truth
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.utterance import Finding, Utterance

_EXTRA = ("accent", "sex", "words_per_minute", "pitch", "pitch_range")


class DemoSource:
    """Labels are degrees of symptoms; the column `words` holds JSON: [[word, start, end], …] in seconds."""

    name: ClassVar[str] = "demo"
    uses: ClassVar[frozenset[str]] = frozenset({"format"})

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        return TRUTH in names

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location = location

    def rows(self) -> Iterator[Utterance | Finding]:
        for number, line in read_truth(self.location):
            yield Utterance(
                id=line["id"],
                audio=str(Address(storage.join(self.location, line["audio"]))),
                place=f"{storage.join(self.location, TRUTH)}:{number}",
                text=line["text"],
                speaker=line["speaker"],
                split=line["split"],
                labels=line["labels"],
                extra={name: line[name] for name in _EXTRA} | {"words": json.dumps(line["words"])},
            )

    def vocabulary(self) -> list[str] | None:
        return None
