"""The symbols of a model, each with its id: characters, and the few special ones with a name of their own.

vocabulary = build_vocabulary(texts)           # <pad> <unk> | a b c …: the same for any order of the texts
vocabulary.unknown_characters(other_texts)     # Counter({"é": 12}): what could not be written with it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sonant.base.errors import ConfigError, TextError

KINDS_OF_SPECIALS = ("blank", "unknown", "bos", "eos", "word_delimiter")
Case = Literal["lower", "upper", "mixed", "none"]


@dataclass(frozen=True, kw_only=True)
class VocabularyConfig:
    """Special symbols come first, in this order, so that the blank of CTC is id 0; empty: there is none."""

    blank: str = "<pad>"  # CTC's blank, and what pads
    unknown: str = "<unk>"  # stands for every character that is not in the vocabulary
    bos: str = ""  # begin and end of a text: attention decoders and language models need them
    eos: str = ""
    word_delimiter: str = "|"  # written for the space; empty: the space is a symbol like any other
    alphabet: str = ""  # the characters, when they are known beforehand; empty: those of the texts
    min_count: int = 1  # characters of the texts seen less often are left out

    def __post_init__(self) -> None:
        if self.min_count < 1:
            raise ConfigError("min_count", f"it is {self.min_count}, but 1 is the least.", "Give 1 to keep all.")
        if self.alphabet and self.min_count > 1:
            raise ConfigError("min_count", "it has no effect on a given alphabet.", "Leave one of the two out.")
        check_apart(self.specials)

    @property
    def specials(self) -> dict[str, str]:
        """Each special symbol that there shall be, by what it is."""
        named = {name: getattr(self, name) for name in KINDS_OF_SPECIALS}
        return {name: symbol for name, symbol in named.items() if symbol}


def check_apart(specials: Mapping[str, str]) -> None:
    """Only begin and end of a text may share a symbol: they never stand in the same place."""
    names: dict[str, str] = {}
    for name, symbol in specials.items():
        other = names.setdefault(symbol, name)
        if other != name and (other, name) != ("bos", "eos"):
            raise ConfigError(name, f"'{symbol}' is already the {other}.", "Give it a symbol of its own.")


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Symbols by id. A special symbol never stands for text: the characters "<s>" are not the symbol `<s>`."""

    symbols: tuple[str, ...]
    blank: str | None = None
    unknown: str | None = None
    bos: str | None = None
    eos: str | None = None
    word_delimiter: str | None = None

    def __post_init__(self) -> None:
        twice = [symbol for symbol, count in Counter(self.symbols).items() if count > 1]
        if twice:
            ids = [str(id) for id, symbol in enumerate(self.symbols) if symbol == twice[0]]
            problem = f"the symbol '{twice[0]}' has the ids {' and '.join(ids)}, but a symbol has one."
            raise TextError("vocabulary", problem, "Remove all but one.")
        if "" in self.symbols:
            raise TextError("vocabulary", f"id {self.symbols.index('')} has no symbol.", "Give it one.")
        for name, symbol in self.specials.items():
            if symbol not in self.ids:
                problem = f"the {name.replace('_', ' ')} '{symbol}' is not among the {len(self)} symbols."
                raise TextError("vocabulary", problem, f"Add it, or name the one that is the {name}.")

    def __len__(self) -> int:
        return len(self.symbols)

    @cached_property
    def ids(self) -> dict[str, int]:
        return {symbol: id for id, symbol in enumerate(self.symbols)}

    @property
    def specials(self) -> dict[str, str]:
        """Each special symbol by what it is: blank, unknown, bos, eos, word_delimiter."""
        named = {name: getattr(self, name) for name in KINDS_OF_SPECIALS}
        return {name: symbol for name, symbol in named.items() if symbol is not None}

    def id_of(self, special: str) -> int | None:
        """The id of a special symbol, e.g. `id_of("blank")`; None where there is none."""
        symbol = self.specials.get(special)
        return None if symbol is None else self.ids[symbol]

    @cached_property
    def characters(self) -> dict[str, int]:
        """What text can be written with: one character each, the space among them, with its id."""
        special = set(self.specials.values())
        written = {symbol: id for symbol, id in self.ids.items() if len(symbol) == 1 and symbol not in special}
        return written | ({} if self.word_delimiter is None else {" ": self.ids[self.word_delimiter]})

    @property
    def case(self) -> Case:
        """How its letters are written; a text in another case would be unknown letter by letter."""
        letters = "".join(symbol for symbol in self.symbols if symbol not in self.specials.values())
        has_upper = any(character.upper() == character != character.lower() for character in letters)
        has_lower = any(character.lower() == character != character.upper() for character in letters)
        if has_upper and has_lower:
            return "mixed"
        return "upper" if has_upper else "lower" if has_lower else "none"

    def unknown_characters(self, texts: Iterable[str]) -> Counter[str]:
        """The characters that are not in the vocabulary, and how often each occurs."""
        counts = _count(texts)
        return Counter({character: count for character, count in counts.items() if character not in self.characters})


def build_vocabulary(texts: Iterable[str], config: VocabularyConfig | None = None) -> Vocabulary:
    """Special symbols, then the characters in order of their code points; texts are read once and not kept."""
    config = config or VocabularyConfig()
    if config.alphabet:
        characters = set(config.alphabet)
    else:
        characters = {character for character, count in _count(texts).items() if count >= config.min_count}
    specials = config.specials
    characters -= {*specials.values(), " "} if config.word_delimiter else {*specials.values()}
    if not characters:
        often = f" {config.min_count} times or more" if config.min_count > 1 else ""
        problem = f"no character is seen{often}, so there is nothing to learn to write."
        raise TextError("texts", problem, "Give more text, or an alphabet.")
    return Vocabulary(symbols=(*dict.fromkeys(specials.values()), *sorted(characters)), **specials)


def _count(texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    return counts
