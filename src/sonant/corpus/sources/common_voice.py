"""Common Voice as published: `validated.tsv`, `train.tsv`, … beside a folder `clips`.

Its own splits are taken where they are: `validated` holds further speakers of the same sentences, and is read only
when `--table validated.tsv` asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.corpus.sources.locate import entries
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.table import read_tables
from sonant.corpus.utterance import Finding, Utterance

_SPLITS = {"train.tsv": "train", "dev.tsv": "dev", "test.tsv": "test"}
_COLUMNS = {"audio": "path", "text": "sentence", "speaker": "client_id"}


class CommonVoiceSource:
    """One language of Common Voice."""

    name: ClassVar[str] = "common_voice"
    uses: ClassVar[frozenset[str]] = frozenset(
        "table audio columns labels label_separator encoding missing split".split()
    )

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        return "clips/" in names and any(name in names for name in ("validated.tsv", *_SPLITS))

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        columns = _COLUMNS | self.options.columns
        options = replace(self.options, columns=columns, delimiter="\t")
        clips = storage.join(self.location, self.options.audio or "clips")
        yield from read_tables(self._tables(), clips, options)

    def vocabulary(self) -> list[str] | None:
        return None

    def _tables(self) -> dict[str, str]:
        if self.options.table:
            return {storage.join(self.location, self.options.table): _SPLITS.get(self.options.table, "")}
        names = entries(self.location)
        found = {name: split for name, split in _SPLITS.items() if name in names}
        if not found and "validated.tsv" in names:
            found = {"validated.tsv": ""}
        if not found:
            raise SourceError(self.location, "there is neither train.tsv nor validated.tsv.", "Name one with --table.")
        return {storage.join(self.location, name): split for name, split in found.items()}
