"""Texts of corpora as a recogniser learns them that writes: its symbols, and what is too long for it.

All of it is told before anything is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sonant.base.errors import ConfigError, TextError
from sonant.corpus.manifest import Corpus
from sonant.models.writer import Limits
from sonant.recipes.run_files import kept_tokenizer
from sonant.recipes.transcripts import texts_of
from sonant.text.coding import Tokenizer
from sonant.text.normalize import Normalizer, NormalizerConfig
from sonant.text.subword_training import SubwordsConfig
from sonant.text.tokenizer import load_tokenizer, train_tokenizer
from sonant.training.run_folder import RunFolder

_SHOWN = 5
_MARGIN = 1.5  # denser texts than those learnt are written as well


@dataclass(frozen=True, kw_only=True)
class WrittenTokenizerConfig:
    """The model's own, from its folder; a model from scratch has one of the training texts."""

    folder: str = ""  # of another one
    normalizer: NormalizerConfig | None = None  # of the texts that are learnt; None: as the tokenizer has it
    train: SubwordsConfig = field(default_factory=lambda: SubwordsConfig(size=1024))

    def __post_init__(self) -> None:
        if self.folder and self.train != SubwordsConfig(size=1024):
            problem = f"it comes from a folder ({self.folder}), and none is trained."
            raise ConfigError("tokenizer.train", problem, "Leave one of the two out.")


@dataclass(frozen=True)
class Unwritable:
    """An utterance that is too long to be heard or written at once."""

    id: str
    seconds: float
    num_tokens: int


def written_tokenizer(
    config: WrittenTokenizerConfig, model_folder: str, run: RunFolder, corpora: Sequence[Corpus]
) -> Tokenizer:
    """The one that the run began with; at its beginning, one that is there or one that is trained."""

    def found() -> Tokenizer:
        made: Any = _found(config, model_folder, corpora)
        return made if config.normalizer is None else replace(made, normalizer=Normalizer(config.normalizer))  # type: ignore[no-any-return]

    return kept_tokenizer(run, found)


def _found(config: WrittenTokenizerConfig, model_folder: str, corpora: Sequence[Corpus]) -> Tokenizer:
    if config.folder or model_folder:
        return load_tokenizer(config.folder or model_folder)
    trained = train_tokenizer(texts_of(corpora), config.train)
    if trained.bos_id is None or trained.eos_id is None:
        problem = "a text has to begin and to end with a symbol."
        raise TextError("tokenizer.train", problem, "Name bos and eos, e.g. <s> and </s>.")
    return trained


def writable(
    corpora: Sequence[Corpus],
    tokenizer: Tokenizer,
    limits: Limits,
    num_prompt: int,
    seconds_after: Callable[[float], float] = float,
) -> tuple[list[Corpus], list[Unwritable], float]:
    """The corpora without utterances that are too long, these, and how many tokens a second may have.

    `seconds_after` is how long augmentation may make them."""
    kept, left, densest = [], [], 0.0
    for corpus in corpora:
        texts = [str(text or "") for text in corpus.column("text")]
        counts = np.array([len(ids) for ids in tokenizer.encode_all(texts)], np.int64)
        seconds = np.array([seconds_after(one) for one in corpus.seconds.tolist()])
        is_writable = counts <= limits.most_tokens - num_prompt - 1
        is_writable &= seconds <= (np.inf if limits.most_seconds is None else limits.most_seconds)
        ids = corpus.column("id")
        rows = np.flatnonzero(~is_writable)
        left += [Unwritable(str(ids[row]), float(corpus.seconds[row]), int(counts[row])) for row in rows]
        if is_writable.any():
            kept.append(corpus.where(is_writable))
            dense = counts[is_writable] / np.maximum(corpus.seconds[is_writable], 1e-3)
            densest = max(densest, float(dense.max()))
    if not kept:
        problem = f"all of {len(left):,} utterances are too long, e.g. {_told(left[0])}."
        raise ConfigError("corpora.train", problem, "Cut recordings into sentences when they are prepared.")
    return kept, left, round(_MARGIN * densest, 2)


def tell_unwritable(split: str, left: Sequence[Unwritable], limits: Limits, say: Callable[[str], None]) -> None:
    if left:
        most = f"{limits.most_tokens} tokens" + (f" and {limits.most_seconds:g} s" if limits.most_seconds else "")
        told = "; ".join(_told(one) for one in left[:_SHOWN])
        more = f"; and {len(left) - _SHOWN:,} more" if len(left) > _SHOWN else ""
        say(f"{split}: left out, since the model has room for {most}: {told}{more}")


def _told(one: Unwritable) -> str:
    return f"'{one.id}' ({one.seconds:.1f} s, {one.num_tokens} tokens)"
