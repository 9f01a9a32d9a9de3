"""The texts of a corpus as they stand in its manifest, streamed: a corpus of text may be larger than memory.

    for piece in read_pieces("my-corpus", split="train"):
        piece.document, piece.part, piece.text       # the parts of one document come one after the other

The parts of a document, put together, are the document to the character.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from sonant.base import storage
from sonant.base.errors import ManifestError
from sonant.corpus.manifest import MANIFEST

_BATCH_ROWS = 256  # of 64 kB at most
_COLUMNS = ("id", "audio", "text", "split", "document", "part")


class Piece(NamedTuple):
    """A document, or one of the parts that a long one was cut into."""

    document: str
    part: int  # counted from 1
    text: str


def read_pieces(folder: str, split: str = "") -> Iterator[Piece]:
    """Every text of a split, of all splits if none is named, in the order of the manifest."""
    where = storage.join(folder, MANIFEST)
    with storage.open_binary(where) as file:
        try:
            manifest = pq.ParquetFile(file)
        except pa.ArrowInvalid as error:
            problem = f"the manifest cannot be read: {error}."
            raise ManifestError(where, problem, "Run `sonant prepare` again.") from error
        columns = [name for name in _COLUMNS if name in manifest.schema_arrow.names]
        for batch in manifest.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
            for row in batch.to_pylist():
                if row["text"] is not None and split in ("", row["split"]):
                    is_part = row["audio"] is None and row.get("part") is not None and row.get("document") is not None
                    yield (
                        Piece(row["document"], int(row["part"]), row["text"])
                        if is_part
                        else Piece(row["id"], 1, row["text"])
                    )
