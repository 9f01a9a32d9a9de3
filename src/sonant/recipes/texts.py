"""What a language model learns from: places become token files, and these what is trained on and what is kept back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from sonant.base import storage
from sonant.base.errors import ConfigError, SourceError, UsageError
from sonant.base.names import suggestion
from sonant.batches.tokens.documents import Stretch, Texts, texts_of_corpus, texts_of_files, texts_of_stream
from sonant.batches.tokens.spans import ShareConfig, Spans, everything, of_split, shared_out
from sonant.batches.tokens.writing import TokenizingConfig, tokenized
from sonant.corpus.manifest import MANIFEST
from sonant.corpus.sources.arrow.hub import HubId, hub_id, streamed_rows
from sonant.corpus.sources.options import Documents, SourceOptions
from sonant.corpus.utterance import Finding
from sonant.text.tokenizer import Tokenizer

Say = Callable[[str], None]
_SHOWN = 5  # faults of a source in words


@dataclass(frozen=True, kw_only=True)
class HubTexts:
    """A dataset of a hub, or a folder that `datasets` can load, read as a stream: it need not fit on the disk."""

    id: str  # owner/name, owner/name:config, owner/name@revision
    split: str = "train"
    column: str = "text"


@dataclass(frozen=True, kw_only=True)
class TextsConfig:
    train: tuple[str, ...] = ()  # corpora of `sonant prepare`; text files, tables, folders of either
    validation: tuple[str, ...] = ()  # the same; empty: a split of the corpora, or a share of the documents
    train_split: str = "train"
    validation_split: str = "dev"
    share: ShareConfig = field(default_factory=ShareConfig)  # where there are no splits
    hub: HubTexts | None = None  # instead of `train`
    documents: Documents = "auto"  # what a text file holds: one text, or a document in each block or line
    column: str = ""  # of tables, with the text
    encoding: str = ""  # of text files; empty: recognised
    max_train_tokens: int | None = None  # the first so many
    max_validation_tokens: int | None = None
    tokenizing: TokenizingConfig = field(default_factory=TokenizingConfig)
    cache: str = ""  # where token files lie; empty: ~/.cache/sonant/tokens


def check_given(config: TextsConfig) -> None:
    """Whether there is anything to learn from, and not twice."""
    if not config.train and config.hub is None:
        raise ConfigError("texts.train", "nothing is given to learn from.", "Name corpora or texts behind the recipe.")
    if config.train and config.hub:
        raise ConfigError("texts.hub", "texts.train is given as well.", "Leave one of the two out.")
    if config.hub and config.tokenizing.max_tokens is None:
        problem = "a stream may never end: texts.tokenizing.max_tokens is required with it."
        raise ConfigError("texts.hub", problem, "Give a budget of tokens.")


def read_training_texts(config: TextsConfig, say: Say) -> Texts:
    """Everything that is trained on, and what is kept back of it where validation has no places of its own."""
    return _of_hub(config.hub) if config.hub else read_texts(config.train, config, say)


def token_spans(config: TextsConfig, tokenizer: Tokenizer, say: Say) -> tuple[Spans, Spans]:
    """For training and for validation."""
    train = _spans(read_training_texts(config, say), config, tokenizer)
    if config.validation:
        validation = _spans(read_texts(config.validation, config, say), config, tokenizer)
        if _are_corpora(config.validation):
            validation = of_split(validation.file, config.validation_split)
        if _are_corpora(config.train):
            train = of_split(train.file, config.train_split)
    elif _are_corpora(config.train):
        train, validation = (of_split(train.file, split) for split in (config.train_split, config.validation_split))
    else:
        train, validation = shared_out(train, config.share)
    return _first(train, config.max_train_tokens), _first(validation, config.max_validation_tokens)


def evaluation_spans(config: TextsConfig, places: tuple[str, ...], split: str, tokenizer: Tokenizer, say: Say) -> Spans:
    """Texts to measure a bundle on: all of them, or one split of corpora."""
    spans = _spans(read_texts(places, config, say), config, tokenizer)
    return of_split(spans.file, split) if _are_corpora(places) else spans


def _spans(texts: Texts, config: TextsConfig, tokenizer: Tokenizer) -> Spans:
    return everything(tokenized(texts, tokenizer, config.cache or _usual_cache(), config.tokenizing))


def _first(spans: Spans, num_tokens: int | None) -> Spans:
    return spans if num_tokens is None else spans.first(num_tokens)


def read_texts(places: tuple[str, ...], config: TextsConfig, say: Say) -> Texts:
    """Corpora, or texts: one after the other, as one."""
    are_corpora = [_is_corpus(place) for place in places]
    if any(are_corpora) and not all(are_corpora):
        names = ", ".join(place for place, found in zip(places, are_corpora, strict=True) if not found)
        problem = f"corpora and texts are mixed: {names}."
        raise UsageError("texts", problem, "Prepare the texts as well: sonant prepare --from text.")
    if all(are_corpora):
        found = [texts_of_corpus(place) for place in places]
        return Texts(
            lambda: chain.from_iterable(texts.stretches() for texts in found),
            " ".join(texts.fingerprint for texts in found),
        )
    columns = {"text": config.column} if config.column else {}
    options = SourceOptions(documents=config.documents, encoding=config.encoding, columns=columns)
    faults = _Faults(say)
    texts = texts_of_files(places, options, faults.note)

    def stretches() -> Iterator[Stretch]:
        yield from texts.stretches()
        faults.tell()

    return Texts(stretches, texts.fingerprint)


class _Faults:
    """Rows that were left out: the first of them by name, then how many."""

    def __init__(self, say: Say) -> None:
        self.say, self.count = say, 0

    def note(self, found: Finding) -> None:
        self.count += 1
        if self.count <= _SHOWN:
            self.say(f"left out: {found}")

    def tell(self) -> None:
        if self.count > _SHOWN:
            self.say(f"left out: {self.count:,} rows in all")


def _of_hub(config: HubTexts) -> Texts:
    wanted = HubId(config.id) if os.path.isdir(config.id) else hub_id(config.id)

    def documents() -> Iterator[str]:
        for row in streamed_rows(config.id, wanted, config.split):
            if config.column not in row:
                problem = f"its rows have no '{config.column}'."
                raise SourceError(config.id, problem, suggestion(config.column, row))
            yield str(row[config.column] or "")

    return Texts(lambda: texts_of_stream(documents(), "").stretches(), f"{config}")


def _are_corpora(places: tuple[str, ...]) -> bool:
    return bool(places) and _is_corpus(places[0])


def _is_corpus(place: str) -> bool:
    return storage.exists(storage.join(place, MANIFEST))


def _usual_cache() -> str:
    return os.path.join(os.environ.get("SONANT_CACHE") or os.path.expanduser("~/.cache/sonant"), "tokens")
