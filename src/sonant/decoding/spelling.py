"""How the ids of a tokenizer write words: which begin one, and with which letters they go on.

Letters are numbers of this tokenizer's own signs: characters, or what its subwords are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sonant.base.errors import TextError
from sonant.text.tokenizer import Tokenizer

_MARKS = ("▁", "Ġ")  # a subword with one of them in front begins a word
_CONTINUATION = "##"  # or every subword does but for those with this in front
NO_LETTER = -1  # a sign that is in no word


@dataclass(frozen=True, eq=False)
class Spelling:
    """What decoders must know of a tokenizer; asked for once and then only looked up."""

    tokenizer: Tokenizer

    @cached_property
    def blank_id(self) -> int:
        """CTC's blank."""
        if self.tokenizer.blank_id is None:
            raise TextError("vocabulary", "it has no blank, which CTC needs.", "Name its blank symbol.")
        return self.tokenizer.blank_id

    @cached_property
    def is_silent(self) -> np.ndarray:
        """(V,) booleans: begin and end of a text, which no decoder writes; the blank is not among them."""
        names = (self.tokenizer.bos_id, self.tokenizer.eos_id)
        silent = np.zeros(self.tokenizer.size, bool)
        silent[[id for id in names if id is not None and id != self.blank_id]] = True
        return silent

    @cached_property
    def begins_word(self) -> np.ndarray:
        """(V,) booleans: the word before ends with this token."""
        return np.array([begins if self.has_words else bool(signs) for begins, signs in self._written], bool)

    @cached_property
    def has_words(self) -> bool:
        """Without signs between words, every token is taken for one."""
        return any(begins for begins, _ in self._written)

    @cached_property
    def letters(self) -> np.ndarray:
        """(V, longest) letters that each token adds to its word, filled up with the number of letters."""
        return self._filled([[self._letter(sign) for sign in signs] for _, signs in self._written])

    @property
    def num_letters(self) -> int:
        return len(self._alphabet)

    def spell(self, words: Sequence[str]) -> np.ndarray:
        """(N, longest) letters of words, filled up likewise; -1 stands in a word that cannot be written."""
        rows = []
        for ids in self._encoded(words):
            signs = [self._signs[id] for id in ids]
            is_written = ids and None not in signs and not any(self.begins_word[id] for id in ids[1:])
            rows.append([self._letter(sign) for part in signs for sign in part or ""] if is_written else [NO_LETTER])
        return self._filled(rows)

    def word_starts(self, ids: Sequence[int]) -> list[int]:
        """The places of the tokens that begin words, and of those that only divide them."""
        if not self.has_words:
            return list(range(len(ids)))
        begins = self.begins_word
        return [place for place, id in enumerate(ids) if place == 0 or begins[id]]

    def divides(self, id: int) -> bool:
        """It ends a word and writes nothing itself."""
        return bool(self.begins_word[id]) and not self._written[id][1]

    def _encoded(self, words: Sequence[str]) -> list[list[int]]:
        """Without a symbol for the unknown, a tokenizer refuses what it cannot write; it has no ids here."""
        if self.tokenizer.unknown_id is not None:
            return self.tokenizer.encode_all(words)
        return [[] if self.tokenizer.unknown_in(word) else self.tokenizer.encode(word) for word in words]

    def _filled(self, rows: list[list[int]]) -> np.ndarray:
        array = np.full((len(rows), max(map(len, rows), default=0)), self.num_letters, np.int32)
        for place, row in enumerate(rows):
            array[place, : len(row)] = row
        return array

    def _letter(self, sign: str) -> int:
        return self._alphabet.get(sign, NO_LETTER)

    @cached_property
    def _alphabet(self) -> dict[str, int]:
        signs = sorted({sign for _, signs in self._written for sign in signs})
        return {sign: letter for letter, sign in enumerate(signs)}

    @cached_property
    def _signs(self) -> list[str | None]:
        """What each id adds to a word; None for those that write nothing that could be in one."""
        specials = set(self.tokenizer.vocabulary.specials.values())
        delimiter = self.tokenizer.vocabulary.word_delimiter
        return [
            None if symbol in specials and symbol != delimiter else signs
            for symbol, (_, signs) in zip(self.tokenizer.symbols, self._written, strict=True)
        ]

    @cached_property
    def _written(self) -> list[tuple[bool, str]]:
        """Of each token: whether it begins a word, and its signs."""
        symbols = self.tokenizer.symbols
        specials = set(self.tokenizer.vocabulary.specials.values())
        dividers = {" ", self.tokenizer.vocabulary.word_delimiter}
        mark = next((mark for mark in _MARKS if _is_used(mark, symbols)), None)
        continues = not mark and any(symbol.startswith(_CONTINUATION) and len(symbol) > 2 for symbol in symbols)
        written = []
        for symbol in symbols:
            if symbol in dividers or symbol == mark:
                written.append((True, ""))
            elif symbol in specials:
                written.append((False, ""))
            elif mark and symbol.startswith(mark):
                written.append((True, symbol[len(mark) :]))
            elif continues:
                goes_on = symbol.startswith(_CONTINUATION)
                written.append((not goes_on, symbol[len(_CONTINUATION) :] if goes_on else symbol))
            else:
                written.append((False, symbol))
        return written


def _is_used(mark: str, symbols: Iterable[str]) -> bool:
    return any(symbol.startswith(mark) and len(symbol) > len(mark) for symbol in symbols)
