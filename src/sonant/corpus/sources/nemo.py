"""NeMo's manifests: an object with `audio_filepath`, `duration` and `text` on each line, and `offset` where cut.

Where recordings were packed into tars, `shard_id` tells which `audio_<id>.tar` beside the manifest holds the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.corpus.sources.locate import entries
from sonant.corpus.sources.manifests import (
    first_object,
    lacking,
    manifests_in,
    open_manifest,
    read_manifests,
    with_columns,
    with_splits,
)
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.cells import text_of
from sonant.corpus.sources.tables.columns import Meaning, meaning_of
from sonant.corpus.sources.tables.tabular import Row, Table
from sonant.corpus.utterance import Finding, Utterance

_AUDIO, _SHARD = "audio_filepath", "shard_id"
_COLUMNS = {"audio": _AUDIO, "start": "offset", "seconds": "duration", "text": "text"}


class NemoSource:
    """A manifest, or a folder of them: one, one for each split, or the numbered parts of one."""

    name: ClassVar[str] = "nemo"
    uses: ClassVar[frozenset[str]] = frozenset(
        "table audio columns labels label_separator encoding missing split".split()
    )

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        return any(_AUDIO in first_object(manifest) for manifest in manifests_in(location, names))

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        names = entries(self.location)
        folder = self.location if names else storage.parent(self.location)
        opened = [(*self._opened(location), split) for location, split in self._manifests(names).items()]
        yield from read_manifests(opened, folder, self.options)

    def vocabulary(self) -> list[str] | None:
        return None

    def _manifests(self, names: Sequence[str]) -> dict[str, str]:
        if self.options.table:
            return with_splits(self.location, [storage.join(self.location, self.options.table)])
        found = [self.location]
        if names:
            found = [one for one in manifests_in(self.location, names) if _AUDIO in first_object(one)]
        if not found:
            problem = f"no file of JSON in this folder has objects with '{_AUDIO}'."
            raise SourceError(self.location, problem, "Name the manifest, or its folder.")
        return with_splits(self.location, found)

    def _opened(self, location: str) -> tuple[Table, Meaning]:
        table = open_manifest(location, _whole_row, self.options)
        options = with_columns(table, _COLUMNS, self.options)
        if "audio" not in options.columns:
            problem = f"no object in it has '{_AUDIO}'."
            raise SourceError(location, problem, "Say which key names the recording: --columns audio=KEY")
        return table, meaning_of(location, table.columns, options)


def _whole_row(row: Row) -> Iterator[Row | Finding]:
    """The row, if it names one recording; of those in tars, with the tar."""
    audio = row.cells.get(_AUDIO)
    if finding := lacking(row, (_AUDIO,)):
        yield finding
    elif isinstance(audio, list):
        problem = f"'{_AUDIO}' is a list of {len(audio)} files, and an utterance is heard in one."
        yield Finding(rule="bad-line", place=row.place, problem=problem, action="Name one of them, or mix them before.")
    elif row.cells.get(_SHARD) is not None:
        tar = f"audio_{text_of(row.cells[_SHARD])}.tar"
        yield Row(row.place, {**row.cells, _AUDIO: str(Address(tar, text_of(audio)))})
    else:
        yield row
