"""What every tokenizer can do, whatever its symbols are."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from sonant.base import config, storage
from sonant.base.errors import TextError
from sonant.text.normalize import Normalizer
from sonant.text.vocabulary import Vocabulary

DESCRIPTION = "text.json"
FORMAT_VERSION = 1
UNKNOWN_MARK = "\u2047"  # ⁇: an unknown symbol, decoded, is one character that is wrong


class Tokenizer(Protocol):
    """Text to ids and back. `decode(encode(text))` is the normalised text, wherever the vocabulary can write it."""

    vocabulary: Vocabulary
    normalizer: Normalizer

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of the normalised text alone: no bos, no eos, and never a special symbol that the text spells."""

    @abstractmethod
    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The same for many texts, as fast as it goes."""

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids as they stand: nothing is collapsed, so two equal ids are two letters.

        Special symbols write nothing, an unknown one writes ⁇. Ids below 0 are the padding of labels, and no text.
        """

    @abstractmethod
    def unknown_in(self, text: str) -> Counter[str]:
        """The characters of the normalised text that it cannot write, counted."""

    @abstractmethod
    def save(self, folder: str) -> None:
        """Writes what `load_tokenizer` reads back to an equal tokenizer."""

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.vocabulary.symbols

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    @property
    def blank_id(self) -> int | None:
        """CTC's blank, which also pads."""
        return self.vocabulary.id_of("blank")

    @property
    def pad_id(self) -> int | None:
        return self.blank_id

    @property
    def unknown_id(self) -> int | None:
        return self.vocabulary.id_of("unknown")

    @property
    def bos_id(self) -> int | None:
        return self.vocabulary.id_of("bos")

    @property
    def eos_id(self) -> int | None:
        return self.vocabulary.id_of("eos")


def write_description(folder: str, kind: str, tokenizer: Tokenizer) -> None:
    """`text.json`: which tokenizer this is, how it normalises and which symbols are special."""
    description = {
        "format": FORMAT_VERSION,
        "kind": kind,
        "normalizer": config.to_dict(tokenizer.normalizer.config),
        "specials": tokenizer.vocabulary.specials,
    }
    text = json.dumps(description, ensure_ascii=False, indent=2)
    storage.write_text(storage.join(folder, DESCRIPTION), text + "\n")


def known_ids(ids: Iterable[int], size: int) -> list[int]:
    """The ids that stand for a symbol, without the padding of labels."""
    known = [int(id) for id in ids if id >= 0]
    if known and max(known) >= size:
        problem = f"the id {max(known)} was found, but the vocabulary has {size} symbols, from 0 to {size - 1}."
        raise TextError("decoding", problem, "Use the tokenizer that the model was trained with.")
    return known
