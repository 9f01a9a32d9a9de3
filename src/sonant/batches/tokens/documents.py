"""Where texts come from: a prepared corpus, text files and tables, or any stream; long ones in stretches.

A document arrives as one stretch, or as several that follow one another and, put together, are its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import pyarrow.parquet as pq

from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.base.randomness import stable_hash
from sonant.corpus.documents import read_pieces
from sonant.corpus.manifest import MANIFEST
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.texts import TextSource
from sonant.corpus.utterance import Finding

_LONGEST = 1 << 20  # characters of a stretch: what one worker takes at once, and more than most documents have


class Stretch(NamedTuple):
    """A document, or a stretch of a very long one."""

    document: str
    split: str
    text: str
    is_last: bool = True


class Texts(NamedTuple):
    """Documents to be read once, and a mark that changes when they do."""

    stretches: Callable[[], Iterator[Stretch]]
    fingerprint: str


class _Part(NamedTuple):
    document: str
    split: str
    text: str


def texts_of_corpus(folder: str) -> Texts:
    """Every text of a prepared corpus, split by split; a corpus of speech gives its transcripts."""
    where = storage.join(folder, MANIFEST)

    def stretches() -> Iterator[Stretch]:
        for split in _splits(where):
            parts = (_Part(piece.document, split, piece.text) for piece in read_pieces(folder, split))
            yield from _joined(parts)

    size, mark = storage.fingerprint(where)
    return Texts(stretches, f"{folder} {size} {mark}")


def texts_of_files(
    locations: Sequence[str],
    options: SourceOptions | None = None,
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> Texts:
    """Text files, tables (CSV, JSON, Parquet …) or folders of either, without preparing a corpus of them.

    What is wrong with a row is told to `on_finding` and leaves that row out.
    """
    options = options or SourceOptions()

    def parts() -> Iterator[_Part]:
        for location in locations:
            for row in TextSource(location, options).rows():
                if isinstance(row, Finding):
                    on_finding(row)
                elif row.text:
                    yield _Part(str(row.extra.get("document") or row.id), row.split or "", row.text)
                else:
                    problem = "the document has no text."
                    on_finding(Finding(rule="no-text", place=row.place, problem=problem, action="Fill or remove it."))

    marks = [_marks(location) for location in locations]
    return Texts(lambda: _joined(parts()), f"{marks} {options}")


def texts_of_stream(documents: Iterable[str | tuple[str, str]], fingerprint: str) -> Texts:
    """Documents, bare or each with its id, from anything that gives them one after the other: a `datasets` stream, say.

    Nobody can look ahead in a stream, so its fingerprint comes from whoever made it.
    """

    def parts() -> Iterator[_Part]:
        for number, document in enumerate(documents, start=1):
            id, text = (str(number), document) if isinstance(document, str) else document
            if text:
                yield _Part(id, "", text)

    return Texts(lambda: _joined(parts()), fingerprint)


def _joined(parts: Iterable[_Part]) -> Iterator[Stretch]:
    """Parts of one document together again, up to what a stretch may be."""
    for (document, split), group in groupby(parts, lambda part: (part.document, part.split)):
        held: list[str] = []
        size = 0
        for _, _, text in group:
            for piece in (text[first : first + _LONGEST] for first in range(0, len(text), _LONGEST)):
                if size + len(piece) > _LONGEST:
                    yield Stretch(document, split, "".join(held), is_last=False)
                    held, size = [], 0
                held.append(piece)
                size += len(piece)
        yield Stretch(document, split, "".join(held))


def _splits(manifest: str) -> list[str]:
    """The splits that a manifest names, read without its texts; one that is in none is in none of these."""
    with storage.open_binary(manifest) as file, pq.ParquetFile(file) as opened:
        column = opened.read(columns=["split"])["split"]
        found = sorted(value for value in column.unique().to_pylist() if value)
    if not found:
        raise SourceError(manifest, "no document is in any split.", "Prepare the corpus again, with splits.")
    return found


def _marks(location: str) -> list[tuple[str, int, str]]:
    files = list(storage.list_files(location)) if storage.is_folder(location) else [location.partition("#")[0]]
    return [(file, *storage.fingerprint(file)) for file in files]


def digest_of(*parts: object) -> str:
    """A short name for what these parts make up."""
    return f"{stable_hash(*parts):016x}"
