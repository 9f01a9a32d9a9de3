"""Pieces of words are learnt from texts: the same ones whatever the order of the texts, on any machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from sonant.base.errors import ConfigError, TextError
from sonant.text.coding import UNKNOWN_MARK
from sonant.text.normalize import Normalizer, NormalizerConfig
from sonant.text.subwords import SubwordTokenizer, wrap
from sonant.text.vocabulary import check_apart

_NUM_BYTES = 256
_SPACE = "\u2581"  # ▁ stands for the space inside unigram pieces
# A letter between brackets: no text can be cut into such a piece, since both methods part < from what follows.
_SPECIAL = re.compile(r"<[^<>\s]*[A-Za-z][^<>\s]*>")


@dataclass(frozen=True, kw_only=True)
class SubwordsConfig:
    """Byte-level pairs can write every text; unigram pieces are words and syllables of the texts seen.

    The special symbols come first, so that the blank of CTC is id 0, and take part in the size.
    """

    kind: Literal["bpe", "unigram"] = "bpe"
    size: int = 4096  # symbols; fewer where the texts have no more pieces to offer
    blank: str = "<pad>"
    unknown: str = "<unk>"
    bos: str = "<s>"
    eos: str = "</s>"
    normalizer: NormalizerConfig = field(default_factory=lambda: NormalizerConfig(steps=("nfc",)))

    def __post_init__(self) -> None:
        for name, symbol in self.specials.items():
            if not _SPECIAL.fullmatch(symbol):
                problem = f"'{symbol}' could be a piece of a text."
                raise ConfigError(name, problem, f"Write it in angle brackets, as <{name}>.")
        check_apart(self.specials)
        if self.kind == "unigram" and not self.unknown:
            raise ConfigError("unknown", "unigram pieces cannot write every text.", "Name it, e.g. <unk>.")
        least = _NUM_BYTES + len(set(self.specials.values()))
        if self.kind == "bpe" and self.size < least:
            problem = f"it is {self.size}, but the bytes and the special symbols alone are {least}."
            raise ConfigError("size", problem, f"Give {least} or more.")

    @property
    def specials(self) -> dict[str, str]:
        named = {"blank": self.blank, "unknown": self.unknown, "bos": self.bos, "eos": self.eos}
        return {name: symbol for name, symbol in named.items() if symbol}


def train_subwords(texts: Iterable[str], config: SubwordsConfig | None = None) -> SubwordTokenizer:
    """Reads the texts once; memory grows with the number of different words only."""
    config = config or SubwordsConfig()
    normalizer = Normalizer(config.normalizer)
    characters: set[str] = set()

    def prepared() -> Iterator[str]:
        for text in texts:
            normalized = normalizer(text)
            characters.update(normalized)
            yield normalized

    engine, trainer = _byte_pairs(config) if config.kind == "bpe" else _unigram(config)
    try:
        engine.train_from_iterator(prepared(), trainer)
    except Exception as error:
        if "not large enough to contain all chars" not in str(error):
            raise
        raise _too_small(config, len(characters)) from error
    if not characters:
        raise TextError("texts", "they are empty, so there is no piece to learn.", "Give more text.")
    return wrap(_canonical(engine.to_str()), config.specials, normalizer)


def _byte_pairs(config: SubwordsConfig) -> tuple[Any, Any]:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return engine, trainers.BpeTrainer(initial_alphabet=alphabet, min_frequency=2, **_told(config))


def _unigram(config: SubwordsConfig) -> tuple[Any, Any]:
    """A space goes before the first word, so that it has the same pieces as everywhere else; decoding drops it."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    engine = Tokenizer(models.Unigram())
    engine.normalizer = normalizers.Sequence(
        [normalizers.Replace(_SPACE, UNKNOWN_MARK), normalizers.Prepend(_SPACE)]  # a ▁ of the text is no space
    )
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(prepend_scheme="never"), pre_tokenizers.Split("<", "isolated")]
    )
    engine.decoder = decoders.Sequence([decoders.Replace(_SPACE, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return engine, trainers.UnigramTrainer(unk_token=config.unknown, **_told(config))


def _told(config: SubwordsConfig) -> dict[str, Any]:
    specials = list(dict.fromkeys(config.specials.values()))
    return {"vocab_size": config.size, "special_tokens": specials, "show_progress": False}


def _canonical(definition: str) -> str:
    """Unigram scores are sums in the order of a hash table: equal to 1e-13 only, and so, at times, is the order."""
    described = json.loads(definition)
    model = described["model"]
    if model["type"] == "Unigram":
        special = len(described["added_tokens"])
        pieces = [[piece, round(score, 4)] for piece, score in model["vocab"][special:]]
        model["vocab"][special:] = sorted(pieces, key=lambda entry: (-entry[1], entry[0]))
    return json.dumps(described, ensure_ascii=False, separators=(",", ":"))


def _too_small(config: SubwordsConfig, num_characters: int) -> ConfigError:
    least = num_characters + len(set(config.specials.values())) + 2
    problem = f"{config.size} symbols cannot hold the {num_characters} characters of the texts."
    return ConfigError("size", problem, f"Give {least} or more, or normalise the texts to fewer characters.")
