"""A model as one file of arrays that are mapped, not read: it opens at once and processes share its memory.

sonant-ngram 1
{"order": 3, "words": BYTES, "arrays": {"log_probs": 8000, …}}
the words, one a line, and then each array at a multiple of 64 bytes
"""

from __future__ import annotations

import json
from typing import IO, Any

import numpy as np

from sonant.base import storage
from sonant.base.errors import TextError
from sonant.decoding.ngram.arpa import read_arpa
from sonant.decoding.ngram.integer_table import IntegerTable
from sonant.decoding.ngram.model import NgramModel

_MAGIC = b"sonant-ngram 1\n"
_KENLM = b"mmap lm http"  # how its binary files begin
_ALIGNMENT = 64  # bytes
_ARRAYS = {"log_probs": "<f4", "backoffs": "<f4", "shorter": "<i4", "states": "<i4", "keys": "<i8", "places": "<i4"}


def read_ngrams(location: str) -> NgramModel:
    """A model in either form: ours is mapped where it lies on a local disk, an ARPA file is read."""
    with storage.open_binary(location) as file:
        begin = file.read(len(_MAGIC))
    if begin.startswith(_KENLM):
        action = "Give the ARPA file that it was made from; `write_binary` makes a mapped one of it."
        raise TextError(location, "a binary file of KenLM was found, which only KenLM reads.", action)
    return _read_binary(location) if begin == _MAGIC else read_arpa(location)


def write_binary(model: NgramModel, location: str) -> None:
    """Written whole or not at all."""
    table = model.continuations
    arrays = {
        "log_probs": model.log_probs,
        "backoffs": model.backoffs,
        "shorter": model.shorter,
        "states": model.states,
        "keys": table.keys,
        "places": table.places,
    }
    words = "\n".join(model.words).encode()
    header = {"order": model.order, "words": len(words), "arrays": {name: len(array) for name, array in arrays.items()}}

    def write(file: IO[bytes]) -> None:
        file.write(_MAGIC + json.dumps(header).encode() + b"\n" + words)
        for name, array in arrays.items():
            file.write(b"\0" * (-file.tell() % _ALIGNMENT))
            file.write(np.ascontiguousarray(array, _ARRAYS[name]).data)

    storage.write_whole(location, write)


def _read_binary(location: str) -> NgramModel:
    with storage.open_binary(location) as file:
        file.seek(len(_MAGIC))
        try:
            header = json.loads(file.readline())
            words = tuple(file.read(header["words"]).decode().split("\n"))
            found = _arrays(location, file, header["arrays"])
            order = int(header["order"])
        except (ValueError, KeyError, TypeError) as error:
            raise TextError(location, f"the file is damaged: {error}.", "Copy it, or write it again.") from error
    table = IntegerTable(found.pop("keys"), found.pop("places"))
    return NgramModel(order=order, words=words, continuations=table, **found)


def _arrays(location: str, file: IO[bytes], sizes: dict[str, int]) -> dict[str, Any]:
    """Mapped, or read where the storage cannot map."""
    arrays, place = {}, file.tell()
    for name, kind in _ARRAYS.items():
        place += -place % _ALIGNMENT
        size = int(sizes[name])
        if storage.is_remote(location):
            file.seek(place)
            arrays[name] = np.frombuffer(file.read(size * np.dtype(kind).itemsize), kind)
        else:
            mapped = np.memmap(location, kind, "r", place, (size,))
            arrays[name] = mapped.view(np.ndarray)  # the class itself costs a microsecond a call
        if len(arrays[name]) != size:
            raise ValueError(f"'{name}' ends early")
        place += size * np.dtype(kind).itemsize
    return arrays
