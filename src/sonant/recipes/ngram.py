"""What `sonant ngram` does: texts become an n-gram model for decoding, and a word on how well it fits other texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from sonant.base import config as configs
from sonant.base.errors import ConfigError, UsageError
from sonant.base.overrides import Given
from sonant.batches.tokens.documents import Texts
from sonant.decoding.ngram.arpa import write_arpa
from sonant.decoding.ngram.binary import write_binary
from sonant.decoding.ngram.estimation import NgramConfig, estimate_ngrams
from sonant.decoding.ngram.model import NgramModel, build_model
from sonant.recipes.catalogue import absolute
from sonant.recipes.texts import TextsConfig, check_given, read_texts, read_training_texts
from sonant.text.normalize import Normalizer, NormalizerConfig
from sonant.text.tokenizer import load_tokenizer

_ARPA = (".arpa", ".arpa.gz")
_ENDING = ".ngram"
_SENTENCES_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class NgramRecipe:
    """Everything that can be set about a model of words."""

    texts: TextsConfig = field(default_factory=lambda: TextsConfig(documents="line"))
    unit: Literal["word", "character", "token"] = "word"  # what is counted; token: needs `bundle`
    bundle: str = ""  # its tokenizer normalises the texts as it normalised those of training
    normalizer: NormalizerConfig = field(default_factory=lambda: NormalizerConfig(steps=("collapse_whitespace",)))
    ngram: NgramConfig = field(default_factory=NgramConfig)


@dataclass(frozen=True)
class NgramResult:
    location: str
    num_sentences: int
    num_ngrams: tuple[int, ...]  # by order
    perplexity: float | None  # by word, of the held-out texts
    unknown_share: float | None

    def as_dict(self) -> dict[str, object]:
        return vars(self)


def estimate(
    places: Sequence[str],
    location: str,
    settings: Sequence[str | Given] = (),
    *,
    held_out: Sequence[str] = (),
    say: Callable[[str], None] = lambda sentence: None,
) -> NgramResult:
    """Counts the texts (of corpora: the split of training), and writes ARPA or, ending in .ngram, our mapped form."""
    if not location.endswith((*_ARPA, _ENDING)):
        raise UsageError(location, "the ending says nothing.", f"End it in {', '.join(_ARPA)} or {_ENDING}.")
    given = [Given("texts.train", [absolute(place) for place in places], "DATA")]
    config = configs.load(NgramRecipe, None, [*given, *settings])
    check_given(config.texts)
    cut = _cutter(config)
    sentences = _Sentences(read_training_texts(config.texts, say), config.texts.train_split, cut)
    tables = estimate_ngrams(sentences, config.ngram)
    model = build_model(tables)
    if location.endswith(_ENDING):
        write_binary(model, location)
    else:
        write_arpa(tables, location)
    perplexity, unknown = None, None
    if held_out:
        texts = read_texts(tuple(map(absolute, held_out)), config.texts, say)
        perplexity, unknown = fit(model, _Sentences(texts, config.texts.validation_split, cut))
    return NgramResult(location, sentences.count, tuple(map(len, tables.orders)), perplexity, unknown)


def fit(model: NgramModel, sentences: Iterable[list[str]]) -> tuple[float, float]:
    """Perplexity by word, with the ends of sentences and unknown words as the model scores them; the unknown share."""
    nats, num_scored, num_unknown, num_words = 0.0, 0, 0, 0
    for part in batched(sentences, _SENTENCES_AT_ONCE):
        nats -= float(model.score_sentences(part).sum())
        num_words += sum(map(len, part))
        num_scored += sum(len(words) + 1 for words in part)
        num_unknown += sum(word not in model.ids for words in part for word in words)
    if not num_scored:
        raise UsageError("held out", "there is no sentence in these texts.", "Name others.")
    return math.exp(min(nats / num_scored, 700.0)), num_unknown / max(num_words, 1)


def batched(sentences: Iterable[list[str]], count: int) -> Iterator[list[list[str]]]:
    """So many at a time."""
    left = iter(sentences)
    while part := list(islice(left, count)):
        yield part


class _Sentences:
    """The lines of texts as the units that are counted, and how many there were."""

    def __init__(self, texts: Texts, split: str, cut: Callable[[str], list[str]]) -> None:
        self.texts, self.split, self.cut, self.count = texts, split, cut, 0

    def __iter__(self) -> Iterator[list[str]]:
        for stretch in self.texts.stretches():
            if stretch.split and stretch.split != self.split:
                continue
            for line in stretch.text.splitlines():
                if units := self.cut(line):
                    self.count += 1
                    yield units


def _cutter(config: NgramRecipe) -> Callable[[str], list[str]]:
    """A line as units, normalised as the recogniser's texts were."""
    if config.unit == "token" and not config.bundle:
        raise ConfigError("bundle", "tokens are those of a model.", "Name its bundle.")
    tokenizer = load_tokenizer(config.bundle) if config.bundle else None
    normalize = tokenizer.normalizer if tokenizer else Normalizer(config.normalizer)
    if config.unit == "token":
        assert tokenizer
        symbols, encode = tokenizer.symbols, tokenizer.encode
        return lambda line: [symbols[id] for id in encode(line)]
    if config.unit == "character":
        return lambda line: list(normalize(line))
    return lambda line: normalize(line).split()
