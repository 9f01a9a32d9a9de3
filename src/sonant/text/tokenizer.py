"""Tokenizers are trained by config, saved to a folder and loaded back, whichever kind they are.

    tokenizer = train_tokenizer(texts, CharactersConfig())
    tokenizer.save("model")
    load_tokenizer("model").decode(tokenizer.encode("Hello"))  # "Hello"

A folder of transformers (tokenizer.json, or the vocab.json of a CTC model) is loaded as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from sonant.base import config as configs
from sonant.base import storage
from sonant.base.errors import TextError
from sonant.base.names import suggestion
from sonant.text import characters, subwords
from sonant.text.characters import CharacterTokenizer
from sonant.text.coding import DESCRIPTION, FORMAT_VERSION, Tokenizer
from sonant.text.json_files import read_json, read_text
from sonant.text.normalize import Normalizer, NormalizerConfig
from sonant.text.special_names import noted_specials, settings_in, usual_specials
from sonant.text.subword_training import SubwordsConfig, train_subwords
from sonant.text.subwords import SubwordTokenizer, special_tokens, wrap
from sonant.text.vocabulary import KINDS_OF_SPECIALS, VocabularyConfig, build_vocabulary
from sonant.text.vocabulary_files import read_vocabulary

__all__ = ["CharactersConfig", "SubwordsConfig", "Tokenizer", "TokenizerConfig", "load_tokenizer", "train_tokenizer"]


@dataclass(frozen=True, kw_only=True)
class CharactersConfig:
    """Every character of the normalised texts is a symbol."""

    kind: Literal["characters"] = "characters"
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    normalizer: NormalizerConfig = field(default_factory=NormalizerConfig)


TokenizerConfig = CharactersConfig | SubwordsConfig


def train_tokenizer(texts: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """Reads the texts once; the same texts in any order give the same tokenizer."""
    if isinstance(config, SubwordsConfig):
        return train_subwords(texts, config)
    normalizer = Normalizer(config.normalizer)
    return CharacterTokenizer(build_vocabulary(map(normalizer, texts), config.vocabulary), normalizer)


def load_tokenizer(folder: str, language: str = "") -> Tokenizer:
    """What `save` wrote, or a tokenizer of transformers; `language` chooses from a vocabulary of several."""
    if storage.exists(storage.join(folder, DESCRIPTION)):
        return _saved(folder, language)
    if storage.exists(storage.join(folder, subwords.DEFINITION)):
        return _subwords_of_transformers(folder)
    if storage.exists(storage.join(folder, characters.SYMBOLS)):
        return _characters_of_transformers(folder, language)
    problem = f"there is no tokenizer: neither {DESCRIPTION} nor {subwords.DEFINITION} nor {characters.SYMBOLS}."
    raise TextError(folder, problem, "Give the folder of a trained model.")


def _saved(folder: str, language: str) -> Tokenizer:
    where = storage.join(folder, DESCRIPTION)
    described = read_json(where)
    if described.get("format") != FORMAT_VERSION:
        problem = f"format {described.get('format')} was found, {FORMAT_VERSION} is read."
        raise TextError(where, problem, "Update Sonant: this was written by another version of it.")
    normalizer = Normalizer(configs.from_dict(NormalizerConfig, described.get("normalizer"), where))
    specials: dict[str, Any] = dict.fromkeys(KINDS_OF_SPECIALS) | described.get("specials", {})
    match described.get("kind"):
        case characters.KIND:
            vocabulary = read_vocabulary(storage.join(folder, characters.SYMBOLS), language=language, **specials)
            return CharacterTokenizer(vocabulary, normalizer)
        case subwords.KIND:
            return _wrapped(folder, read_text(storage.join(folder, subwords.DEFINITION)), specials, normalizer)
        case other:
            problem = f"the kind '{other}' is not known."
            raise TextError(where, problem, suggestion(str(other), (characters.KIND, subwords.KIND)))


def _subwords_of_transformers(folder: str) -> SubwordTokenizer:
    """Its own normalising is inside its definition."""
    definition = read_text(storage.join(folder, subwords.DEFINITION))
    symbols = special_tokens(definition)
    specials = usual_specials(symbols) | noted_specials(settings_in(folder), symbols)
    return _wrapped(folder, definition, specials | {"word_delimiter": None}, Normalizer(NormalizerConfig(steps=())))


def _wrapped(folder: str, definition: str, specials: dict[str, Any], normalizer: Normalizer) -> SubwordTokenizer:
    try:
        return wrap(definition, specials, normalizer)
    except TextError as error:
        raise TextError(storage.join(folder, subwords.DEFINITION), error.problem, error.action) from error


def _characters_of_transformers(folder: str, language: str) -> CharacterTokenizer:
    """Texts take the case of the vocabulary: in another one every letter would be unknown."""
    if storage.exists(storage.join(folder, "merges.txt")):
        problem = "its tokenizer has an old form, vocab.json with merges.txt."
        raise TextError(folder, problem, "Load it with transformers and save it again: that writes tokenizer.json.")
    vocabulary = read_vocabulary(storage.join(folder, characters.SYMBOLS), language=language)
    case = {"upper": ("uppercase",), "lower": ("lowercase",)}.get(vocabulary.case, ())
    return CharacterTokenizer(vocabulary, Normalizer(NormalizerConfig(steps=(*case, "collapse_whitespace"))))
