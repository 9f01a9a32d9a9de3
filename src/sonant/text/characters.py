"""One symbol a character: what CTC on speech is usually trained to write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sonant.base import storage
from sonant.base.errors import TextError
from sonant.text.coding import UNKNOWN_MARK, Tokenizer, known_ids, write_description
from sonant.text.normalize import Normalizer
from sonant.text.vocabulary import Vocabulary
from sonant.text.vocabulary_files import write_json

KIND, SYMBOLS = "characters", "vocab.json"


@dataclass(frozen=True)
class CharacterTokenizer(Tokenizer):
    """Writes a text character by character; the word delimiter stands for the space."""

    vocabulary: Vocabulary
    normalizer: Normalizer = field(default_factory=Normalizer)

    def encode(self, text: str) -> list[int]:
        ids, unknown = self.vocabulary.characters, self.unknown_id
        text = self.normalizer(text)
        if unknown is None and not ids.keys() >= set(text):
            found = ", ".join(f"'{character}'" for character in sorted(set(text) - ids.keys()))
            problem = f"the vocabulary has neither {found} nor a symbol for the unknown."
            raise TextError(f"'{text[:40]}'", problem, "Add a normalising step that removes them, or the symbols.")
        return [ids.get(character, unknown) for character in text]  # type: ignore[misc]  # seen to above

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        return "".join([self._written[id] for id in known_ids(ids, self.size)])

    def unknown_in(self, text: str) -> Counter[str]:
        return self.vocabulary.unknown_characters([self.normalizer(text)])

    def save(self, folder: str) -> None:
        write_json(self.vocabulary, storage.join(folder, SYMBOLS))
        write_description(folder, KIND, self)

    @cached_property
    def _written(self) -> list[str]:
        """What each id writes."""
        written = dict.fromkeys(self.vocabulary.specials.values(), "")
        if self.vocabulary.word_delimiter is not None:
            written[self.vocabulary.word_delimiter] = " "
        if self.vocabulary.unknown is not None:
            written[self.vocabulary.unknown] = UNKNOWN_MARK
        return [written.get(symbol, symbol) for symbol in self.symbols]
