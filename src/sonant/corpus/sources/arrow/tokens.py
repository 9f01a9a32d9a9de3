"""Token ids of a dataset, and their text where the vocabulary behind them is at hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sonant.base import storage
from sonant.corpus.sources.locate import basename
from sonant.corpus.sources.tables.cells import CellError
from sonant.text.characters import CharacterTokenizer
from sonant.text.tokenizer import Tokenizer, load_tokenizer
from sonant.text.vocabulary_files import read_vocabulary

_IGNORED = -100  # what collators of transformers pad labels with
_LARGEST = 2**31 - 1
_WORD = "▁"  # begins a word in the pieces of sentencepiece


class Tokens:
    """Reads cells of token ids; without a vocabulary they stay what they are."""

    def __init__(self, vocabulary: str) -> None:
        self._tokenizer = _tokenizer(vocabulary) if vocabulary else None
        self._padding = self._tokenizer.pad_id if self._tokenizer else None
        self._largest = self._tokenizer.size - 1 if self._tokenizer else _LARGEST

    @property
    def symbols(self) -> list[str] | None:
        return list(self._tokenizer.symbols) if self._tokenizer else None

    def read(self, ids: Iterable[int | None] | None) -> tuple[int, ...] | None:
        """The ids without padding: -100, and the blank, which is never written."""
        if ids is None:
            return None
        kept = tuple(id for id in ids if id is not None and id not in (_IGNORED, self._padding))
        strange = [id for id in kept if not 0 <= id <= self._largest]
        if strange:
            known = f"the vocabulary has the ids 0 to {self._largest}" if self._tokenizer else "ids are 0 or more"
            action = "Give the vocabulary that the ids were made with: --vocabulary FILE."
            raise CellError("unknown-token", f"it has the token {strange[0]}, but {known}", action)
        return kept

    def text(self, tokens: tuple[int, ...] | None) -> str | None:
        if tokens is None or self._tokenizer is None:
            return None
        return " ".join(self._tokenizer.decode(tokens).replace(_WORD, " ").split())


def _tokenizer(location: str) -> Tokenizer:
    """A file of symbols, or the tokenizer of a model."""
    name: Any = basename(location)
    if name == "tokenizer.json":
        return load_tokenizer(storage.parent(location))
    if storage.is_folder(location):
        return load_tokenizer(location)
    return CharacterTokenizer(read_vocabulary(location))
