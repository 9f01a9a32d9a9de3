"""wenet's `data.list`: an object with `key`, `wav` and `txt` on each line, or on each line a tar of such pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.corpus.sources.lines import Text, decode_text, open_bytes
from sonant.corpus.sources.locate import AudioFinder, audio_folder, basename, entries, folders_above
from sonant.corpus.sources.manifests import lacking, open_manifest, read_manifests, with_columns
from sonant.corpus.sources.missing import unless_all_are_missing
from sonant.corpus.sources.naming import split_in, split_of_folder
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.shards import Shard, read_shards
from sonant.corpus.sources.tables.columns import meaning_of
from sonant.corpus.sources.tables.tabular import Row
from sonant.corpus.utterance import Finding, Utterance

_LIST = "data.list"
_HEAD_BYTES = 1 << 16
_COLUMNS = {"id": "key", "audio": "wav", "text": "txt", "speaker": "spk"}


class WenetSource:
    """A list, a folder with `data.list`, or a folder of such folders: `train`, `dev` and `test`."""

    name: ClassVar[str] = "wenet"
    uses: ClassVar[frozenset[str]] = frozenset(
        "table audio columns labels label_separator encoding missing split".split()
    )

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        if names:
            return _LIST in names or (not storage.is_remote(location) and bool(_lists_below(location, names)))
        return basename(location) == _LIST or (basename(location).endswith(".list") and _is_list(location))

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        for location in self._lists():
            text = decode_text(location, self.options.encoding)
            first = next((line.strip() for line in text if line.strip()), "")
            if not first:
                raise SourceError(location, "the list is empty.", 'Write {"key": …, "wav": …, "txt": …} on each line.')
            yield from self._objects(location) if first.startswith("{") else self._shards(text)

    def vocabulary(self) -> list[str] | None:
        return None

    def _lists(self) -> list[str]:
        names = entries(self.location)
        if not names:
            return [self.location]
        if self.options.table:
            return [storage.join(self.location, self.options.table)]
        found = [storage.join(self.location, _LIST)] if _LIST in names else _lists_below(self.location, names)
        if not found:
            problem = f"there is no {_LIST} in this folder, nor in one directly below."
            raise SourceError(self.location, problem, "Name the list.")
        return found

    def _split(self, location: str) -> str:
        return self.options.split or split_in(basename(location)) or split_of_folder(storage.parent(location)) or ""

    def _objects(self, location: str) -> Iterator[Utterance | Finding]:
        table = open_manifest(location, _complete, self.options)
        meaning = meaning_of(location, table.columns, with_columns(table, _COLUMNS, self.options))
        yield from read_manifests([(table, meaning, self._split(location))], storage.parent(location), self.options)

    def _shards(self, text: Text) -> Iterator[Utterance | Finding]:
        if self.options.columns:
            problem = "this list names tars, whose members have no columns."
            raise SourceError(text.location, problem, "Leave --columns out.")
        yield from text.findings
        folder = audio_folder(storage.parent(text.location), self.options.audio)
        rows = read_shards(_named_in(text, folder, self._split(text.location)), self.options)
        yield from unless_all_are_missing(rows, text.location, folder)


def _is_list(location: str) -> bool:
    """Whether a file begins as a list of either kind."""
    with open_bytes(location) as file:
        first = file.read(_HEAD_BYTES).decode("utf-8-sig", "replace").lstrip().partition("\n")[0]
    return first.rstrip().endswith(".tar") or (first.startswith("{") and '"key"' in first and '"wav"' in first)


def _lists_below(location: str, names: Sequence[str]) -> list[str]:
    below = [storage.join(location, name, _LIST) for name in names if name.endswith("/")]
    return [found for found in below if storage.exists(found)]


def _complete(row: Row) -> Iterator[Row | Finding]:
    yield lacking(row, ("key", "wav")) or row


def _named_in(text: Text, folder: str, split: str) -> list[Shard | Finding]:
    """The tars that a list names; those that were moved are looked for by their name alone."""
    finder = AudioFinder(folder, folders_above(folder))
    shards: list[Shard | Finding] = []
    for number, line in text.numbered():
        if name := line.strip():
            found = finder.find_container(name, place=f"{text.location}:{number}")
            shards.append(found if isinstance(found, Finding) else Shard(found, split))
    return shards
