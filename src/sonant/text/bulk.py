"""Many texts as arrays of ids: what a tokenizer gives for each text by itself, only faster.

    coder = BulkCoder(tokenizer)
    ids, counts = coder(["first text", "second text"])   # all ids in one array, and how many each text has

Words repeat: byte-level pairs are looked up word by word, and only new words go through the tokenizer. Symbols that
are characters are looked up in a table. Other tokenizers cut texts as they do by themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

import numpy as np
import pyarrow as pa

from sonant.text.characters import CharacterTokenizer
from sonant.text.coding import Tokenizer
from sonant.text.normalize import Normalizer, NormalizerConfig
from sonant.text.subwords import SubwordTokenizer

_MOST_WORDS = 1 << 20  # remembered at once
_Coded = tuple[np.ndarray, np.ndarray]


class BulkCoder:
    """Codes texts that are normalised already; may be used by several threads at once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = replace(tokenizer, normalizer=Normalizer(NormalizerConfig(steps=())))  # type: ignore[type-var]
        self._code: Callable[[Sequence[str]], _Coded] = self._by_text
        if isinstance(tokenizer, CharacterTokenizer):
            self._code = _CharacterTable(tokenizer)
        elif isinstance(tokenizer, SubwordTokenizer) and _cuts_as_gpt2(tokenizer.definition):
            self._code = _Words(tokenizer)

    def __call__(self, texts: Sequence[str]) -> _Coded:
        """Ids (N,) of all texts and counts (T,) of each."""
        return self._code(texts)

    def _by_text(self, texts: Sequence[str]) -> _Coded:
        return _flat(self._tokenizer.encode_all(list(texts)))


class _CharacterTable:
    """Looks every character up at once."""

    def __init__(self, tokenizer: CharacterTokenizer) -> None:
        self._tokenizer = replace(tokenizer, normalizer=Normalizer(NormalizerConfig(steps=())))
        known = {ord(character): id for character, id in tokenizer.vocabulary.characters.items()}
        self._ids = np.full(max(known, default=0) + 2, -1, np.int64)  # the last place is for what lies beyond
        self._ids[list(known)] = list(known.values())

    def __call__(self, texts: Sequence[str]) -> _Coded:
        counts = np.array([len(text) for text in texts], np.int64)
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        ids = self._ids[np.minimum(points, len(self._ids) - 1)]
        if len(ids) and ids.min() < 0:
            unknown = self._tokenizer.unknown_id
            if unknown is None:
                return _flat(self._tokenizer.encode_all(list(texts)))  # which says what it cannot write
            ids[ids < 0] = unknown
        return ids, counts


class _Words:
    """Remembers the ids of words, each with the space before it."""

    def __init__(self, tokenizer: SubwordTokenizer) -> None:
        self._tokenizer, self._lock = tokenizer, Lock()
        self._forget()

    def _forget(self) -> None:
        self._places: dict[str, int] = {}
        self._ids, self._ends = np.zeros(0, np.int64), np.zeros(1, np.int64)

    def __call__(self, texts: Sequence[str]) -> _Coded:
        coded = [text.encode() for text in texts]
        sizes = np.cumsum([0, *map(len, coded)])
        cuts = _cuts(np.frombuffer(b"".join(coded), np.uint8), sizes)
        words = pa.Array.from_buffers(
            pa.large_string(), len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(b"".join(coded))]
        ).dictionary_encode()
        places, ids, ends = self._looked_up(words.dictionary.to_pylist())
        place = places[words.indices.to_numpy()]
        starts, counts = ends[place], ends[place + 1] - ends[place]
        behind = np.cumsum(counts)
        found = ids[np.arange(behind[-1] if len(behind) else 0) + np.repeat(starts - (behind - counts), counts)]
        total = np.concatenate([[0], behind])[np.searchsorted(cuts, sizes)]
        return found, np.diff(total)

    def _looked_up(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The place of each word, and all ids with the end of each place's; the arrays are never changed later."""
        with self._lock:
            if len(self._places) > _MOST_WORDS:
                self._forget()
            new = [word for word in words if word not in self._places]
            if new:
                ids, counts = self._tokenizer.encode_words(new)
                self._places.update(zip(new, range(len(self._places), len(self._places) + len(new)), strict=True))
                self._ends = np.concatenate([self._ends, self._ends[-1] + np.cumsum(counts)])
                self._ids = np.concatenate([self._ids, ids])
            places = np.fromiter(map(self._places.__getitem__, words), np.int64, len(words))
            return places, self._ids, self._ends


def _cuts(data: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Where pieces begin: with each text, and wherever byte-level pairs always cut."""
    is_cut = np.zeros(len(data) + 1, bool)
    is_cut[1:-1] = _ALWAYS_CUT[data[:-1], data[1:]]
    is_cut[sizes] = True
    return np.flatnonzero(is_cut)


def _always_cut() -> np.ndarray:
    """For two bytes (256, 256), one behind the other, whether a word ends between them whatever stands around.

    Words of GPT-2 are a run of letters, of digits or of other signs, each with a space before it; only what follows
    an apostrophe may belong to it. Bytes beyond ASCII may be parts of anything, white space among it.
    """
    kinds = np.zeros(256, np.uint8)
    for byte in range(0x21, 0x7F):
        kinds[byte] = 1 if chr(byte).isalpha() else 2 if chr(byte).isdigit() else 3
    before, behind = kinds[:, None], kinds[None, :]
    table: np.ndarray = (before > 0) & (behind > 0) & (before != behind)
    table[ord("'")] = False
    for white in " \n":
        table[kinds > 0, ord(white)] = True
    return table


_ALWAYS_CUT = _always_cut()


def _cuts_as_gpt2(definition: str) -> bool:
    """Whether a definition is byte-level pairs over the words of GPT-2."""
    described = json.loads(definition)
    model, cutter = described["model"], described.get("pre_tokenizer") or {}
    return (
        model["type"] == "BPE"
        and not model.get("dropout")
        and (described.get("normalizer") or {"type": "NFC"}) == {"type": "NFC"}  # a mark begins no word
        and cutter.get("type") == "ByteLevel"
        and cutter.get("use_regex", True)
        and not cutter.get("add_prefix_space", True)
        and all(token["special"] for token in described.get("added_tokens") or [])
    )


def _flat(rows: Sequence[Sequence[int]]) -> _Coded:
    counts = np.array([len(row) for row in rows], np.int64)
    ids = np.fromiter((id for row in rows for id in row), np.int64, int(counts.sum()))
    return ids, counts
