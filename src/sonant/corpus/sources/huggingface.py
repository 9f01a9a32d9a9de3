"""Datasets of Hugging Face: on the hub, saved to disk, or Parquet and Arrow files as the hub lays them out.

The recordings are in an Audio column, or lie as numbers in `input_values`; they stay where they are and are addressed
by row. Token ids (`labels`, `labels.input_ids`) are kept, with their text where --vocabulary tells it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar

from sonant.base import storage
from sonant.base.errors import AbsentError, SonantError, SourceError
from sonant.corpus.sources.arrow.columns import holds_recordings
from sonant.corpus.sources.arrow.hub import fetched_parts, hub_id, is_hub_address
from sonant.corpus.sources.arrow.layout import first_data_file, holds_saved, is_data_file, parts_of
from sonant.corpus.sources.arrow.part import Part
from sonant.corpus.sources.arrow.reading import Reading
from sonant.corpus.sources.arrow.tokens import Tokens
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.utterance import Finding, Utterance

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?(:[\w.-]+)?")


class HuggingFaceSource:
    """A dataset of recordings."""

    name: ClassVar[str] = "huggingface"
    uses: ClassVar[frozenset[str]] = frozenset(
        "columns labels label_separator missing vocabulary split sample_rate".split()
    )

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        if is_hub_address(location) or holds_saved(location, names):
            return True
        file = first_data_file(location, names) if names else location if is_data_file(location) else None
        try:
            return file is not None and holds_recordings(Part(file, (file,)).schema())
        except SonantError:
            return False

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        parts: list[Part] = []
        for part in self._found_parts():
            if isinstance(part, Finding):
                yield part
            else:
                parts.append(part)
        parts = [part for part in parts if part.files]
        if not parts:
            raise SourceError(self.location, "the dataset has no rows.", "Look whether this is the right one.")
        yield from Reading(self.location, parts, self.options, self._tokens).rows()

    def vocabulary(self) -> list[str] | None:
        return self._tokens.symbols

    @cached_property
    def _tokens(self) -> Tokens:
        return Tokens(self.options.vocabulary)

    def _found_parts(self) -> Iterator[Part | Finding]:
        if is_hub_address(self.location):
            yield from self._fetched
        elif storage.is_remote(self.location) or storage.exists(self.location):
            yield from parts_of(self.location)
        elif _HUB_ID.fullmatch(self.location):
            yield from self._fetched
        else:
            raise AbsentError(self.location)

    @cached_property
    def _fetched(self) -> list[Part]:
        return fetched_parts(self.location, hub_id(self.location))
