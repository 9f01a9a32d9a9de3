"""A token file: all tokens of many documents one after the other, and where each document ends.

tokens-0123456789abcdef/
  tokens.bin         uint16 or uint32, little-endian: 2 bytes a token for vocabularies of up to 65,536
  documents.parquet  a row for each document: id, split, end (in tokens), characters, bytes, words, unknown
  tokens.json        what it was made from; written last of all, before the folder gets its name

It is memory-mapped: opening takes no time, and any place of it is as near as any other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sonant.base import storage
from sonant.base.errors import StorageError

FORMAT_VERSION = 1
TOKENS, DOCUMENTS, DESCRIPTION = "tokens.bin", "documents.parquet", "tokens.json"
COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("split", pa.string()),
        ("end", pa.int64()),
        ("characters", pa.int64()),  # of the normalised text, like all that follows
        ("bytes", pa.int64()),  # in UTF-8
        ("words", pa.int64()),
        ("unknown", pa.int64()),  # tokens that stand for what the vocabulary cannot write
    ]
)


@dataclass(frozen=True)
class TokenFile:
    """An opened token file."""

    folder: str
    description: dict[str, Any]
    documents: pa.Table

    def __len__(self) -> int:
        """All tokens, separators among them."""
        return int(self.ends[-1]) if len(self.ends) else 0

    @cached_property
    def tokens(self) -> np.ndarray:
        """(N,) all tokens, read from the disk where they are touched."""
        if not len(self):
            return np.zeros(0, self.description["dtype"])
        return np.memmap(storage.join(self.folder, TOKENS), self.description["dtype"], "r")

    @cached_property
    def ends(self) -> np.ndarray:
        """(D,) where each document ends, its separator included."""
        return self.column("end")

    @cached_property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], self.ends[:-1]]).astype(np.int64)

    @property
    def fingerprint(self) -> str:
        return str(self.description["fingerprint"])

    @property
    def separators(self) -> tuple[int, int]:
        """How many separators stand before and behind each document's own tokens."""
        before, behind = self.description["separators"]
        return before, behind

    def column(self, name: str) -> np.ndarray:
        values: np.ndarray = self.documents[name].to_numpy()
        return values

    def id(self, document: int) -> str:
        return str(self.documents["id"][document].as_py())


def open_token_file(folder: str) -> TokenFile:
    """Opens what `write_token_file` wrote; the file of tokens must have the size that the documents add up to."""
    description = json.loads(storage.read_bytes(storage.join(folder, DESCRIPTION)))
    with storage.open_binary(storage.join(folder, DOCUMENTS)) as file:
        documents = pq.read_table(file).combine_chunks()
    opened = TokenFile(folder, description, documents)
    found = storage.fingerprint(storage.join(folder, TOKENS))[0]
    required = len(opened) * np.dtype(description["dtype"]).itemsize
    if found != required:
        problem = f"{TOKENS} has {found:,} bytes, {required:,} are required."
        raise StorageError(folder, problem, "Remove the folder: it is made again from the texts.")
    return opened


def dtype_for(num_symbols: int) -> str:
    return "uint16" if num_symbols <= 1 << 16 else "uint32"
