"""Symbols that are pieces of words: byte-level pairs, unigram, or whatever a `tokenizer.json` describes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sonant.base import storage
from sonant.base.errors import TextError
from sonant.text.coding import UNKNOWN_MARK, Tokenizer, known_ids, write_description
from sonant.text.normalize import Normalizer
from sonant.text.vocabulary import Vocabulary

KIND, DEFINITION = "subwords", "tokenizer.json"
_WORDS_AT_ONCE = 4096


@dataclass(frozen=True)
class SubwordTokenizer(Tokenizer):
    """Wraps the text of a `tokenizer.json`, the format of the package `tokenizers`."""

    vocabulary: Vocabulary
    normalizer: Normalizer
    definition: str = field(repr=False)

    def encode(self, text: str) -> list[int]:
        return self._as_text(self._engine.encode(self._prepared(text), add_special_tokens=False).ids)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        prepared = [self._prepared(text) for text in texts]
        encodings = self._engine.encode_batch_fast(prepared, add_special_tokens=False)
        return [self._as_text(encoding.ids) for encoding in encodings]

    def encode_words(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids (N,) of all words and counts (W,) of each; words are normalised, and each is cut by itself.

        Made for byte-level pairs, whose symbols have a character for each byte: so many bytes tell where words end,
        and thousands of words need one call to the engine, not one each. Where the bytes do not add up, they do.
        """
        parts = [words[first : first + _WORDS_AT_ONCE] for first in range(0, len(words), _WORDS_AT_ONCE)]
        encodings = self._engine.encode_batch_fast(parts, is_pretokenized=True, add_special_tokens=False)
        ids = np.concatenate([np.zeros(0, np.int64), *(np.array(one.ids, np.int64) for one in encodings)])
        behind = np.cumsum([len(word.encode()) for word in words], dtype=np.int64)
        ends = np.cumsum(self._sizes[ids])
        last = np.searchsorted(ends, behind)
        if len(ids) and len(words) and last[-1] == len(ends) - 1 and (ends[last] == behind).all():
            return ids, np.diff(last, prepend=-1)
        rows = [self._as_text(self._engine.encode(word, add_special_tokens=False).ids) for word in words]
        return np.array([id for row in rows for id in row], np.int64), np.array([len(row) for row in rows], np.int64)

    def decode(self, ids: Iterable[int]) -> str:
        pieces = [piece for id in known_ids(ids, self.size) if (piece := self._written[id])]
        decoder = self._engine.decoder
        return str(decoder.decode(pieces)) if decoder else " ".join(pieces)

    def unknown_in(self, text: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        prepared = self._prepared(text)
        encoding = self._engine.encode(prepared, add_special_tokens=False)
        for id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if id == self.unknown_id or id in self._silent:
                counts.update(prepared[start:end])
        return counts

    def save(self, folder: str) -> None:
        storage.write_text(storage.join(folder, DEFINITION), self.definition)
        write_description(folder, KIND, self)

    def _prepared(self, text: str) -> str:
        text = self.normalizer(text)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            problem = f"character {error.start + 1} is half of a surrogate pair, which is not text."
            raise TextError(f"'{text[:40]!a}'", problem, "Read the file with its true encoding.") from error
        return text

    def _as_text(self, ids: list[int]) -> list[int]:
        """Some definitions let a text spell a special symbol: what did is unknown, and never the symbol."""
        if self._silent.isdisjoint(ids):
            return ids
        instead = [] if self.unknown_id is None else [self.unknown_id]
        return [text for id in ids for text in (instead if id in self._silent else [id])]

    @cached_property
    def _engine(self) -> Any:
        return _engine(self.definition)

    @cached_property
    def _silent(self) -> set[int]:
        """The ids of special symbols: nothing in a text may become one, and they write nothing."""
        named = {*self.vocabulary.specials.values(), *special_tokens(self.definition)}
        return {self.vocabulary.ids[symbol] for symbol in named} - {self.unknown_id}

    @cached_property
    def _sizes(self) -> np.ndarray:
        """Characters of each symbol; those of special ones are no text, and add up to nothing."""
        return np.array([0 if id in self._silent else len(symbol) for id, symbol in enumerate(self.symbols)], np.int64)

    @cached_property
    def _written(self) -> list[str]:
        """The piece that each id writes."""
        special: dict[int | None, str] = {self.unknown_id: UNKNOWN_MARK} | dict.fromkeys(self._silent, "")
        return [special.get(id, symbol) for id, symbol in enumerate(self.symbols)]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.vocabulary, self.normalizer, self.definition)  # the engine forgets its settings


def wrap(definition: str, specials: Mapping[str, str | None], normalizer: Normalizer) -> SubwordTokenizer:
    """A tokenizer from the text of a `tokenizer.json` and the names of its special symbols."""
    ids = _engine(definition).get_vocab(with_added_tokens=True)
    symbols = {id: symbol for symbol, id in ids.items()}
    ordered = tuple(symbols.get(id, f"<hole {id}>") for id in range(max(symbols, default=-1) + 1))
    # GPT-2 and its kin call the end of a text "unknown", although they can write everything.
    others = {symbol for kind, symbol in specials.items() if kind != "unknown"}
    named = {kind: None if kind == "unknown" and symbol in others else symbol for kind, symbol in specials.items()}
    return SubwordTokenizer(Vocabulary(symbols=ordered, **named), normalizer, definition)


def _engine(definition: str) -> Any:
    from tokenizers import Tokenizer as Engine

    try:
        engine = Engine.from_str(definition)
    except Exception as error:  # the package raises nothing more exact
        raise TextError(DEFINITION, f"this describes no tokenizer: {error}.", "Copy the file again.") from error
    engine.encode_special_tokens = True
    engine.no_padding()
    engine.no_truncation()
    return engine


def special_tokens(definition: str) -> list[str]:
    """The symbols that a definition calls special."""
    added = json.loads(definition).get("added_tokens") or []
    return [token["content"] for token in added if token["special"]]
