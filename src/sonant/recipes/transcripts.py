"""Texts of corpora as a recogniser learns them: its symbols, what it cannot write, what is too long for its sound.

All of it is told before anything is trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sonant.base import storage
from sonant.base.errors import ConfigError, TextError
from sonant.base.lengths import frames_needed_by_ctc
from sonant.corpus.manifest import Corpus
from sonant.recipes.run_files import TOKENIZER, kept_tokenizer
from sonant.text.json_files import read_json
from sonant.text.normalize import NormalizerConfig
from sonant.text.subword_training import SubwordsConfig
from sonant.text.tokenizer import CharactersConfig, Tokenizer, load_tokenizer, train_tokenizer
from sonant.training.run_folder import RunFolder

_SHOWN = 5
_WRITER = "ForConditionalGeneration"  # so end the names of what writes token by token
SPOKEN = NormalizerConfig(steps=("nfc", "lowercase", "strip_punctuation", "collapse_whitespace"))


@dataclass(frozen=True, kw_only=True)
class TranscriptTokenizerConfig:
    """From a folder, from a fine-tuned model's folder, or of the characters of the training texts."""

    folder: str = ""
    train: CharactersConfig | SubwordsConfig = field(default_factory=lambda: CharactersConfig(normalizer=SPOKEN))


@dataclass(frozen=True)
class TooLong:
    """An utterance with fewer frames than its text needs."""

    id: str
    num_frames: int
    needed: int


def transcript_tokenizer(
    config: TranscriptTokenizerConfig,
    model_folder: str,
    run: RunFolder,
    corpora: Sequence[Corpus],
    language: str = "",
) -> Tokenizer:
    """The one that the run began with; at its beginning, one that is there or one that is trained. `language` is one of
    several that the model has."""

    def found() -> Tokenizer:
        if config.folder:
            return load_tokenizer(config.folder)
        return _of_model(model_folder, language) or train_tokenizer(texts_of(corpora), config.train)

    tokenizer = kept_tokenizer(run, found)
    if tokenizer.blank_id is None:
        where = config.folder or model_folder or run.path(TOKENIZER)
        raise TextError(where, "the vocabulary has no blank, which CTC needs.", "Name its blank symbol, or train one.")
    return tokenizer


def _of_model(folder: str, language: str) -> Tokenizer | None:
    """That of a checkpoint which was fine-tuned with CTC; the blank is what it pads with."""
    if not folder or not any(storage.exists(storage.join(folder, name)) for name in ("vocab.json", "text.json")):
        return None
    where = storage.join(folder, "config.json")
    described = read_json(where) if storage.exists(where) else {}
    if any(name.endswith(_WRITER) for name in described.get("architectures") or ()):
        return None  # the symbols are those of its decoder, which is not taken over
    found, blank = load_tokenizer(folder, language), described.get("pad_token_id")
    if found.blank_id is not None and blank is not None and blank != found.blank_id:
        problem = f"pad_token_id is {blank}, but the vocabulary pads with {found.blank_id}: one of them is no blank."
        raise ConfigError(where, problem, "Correct pad_token_id, or name another tokenizer.folder.")
    return found


def texts_of(corpora: Sequence[Corpus]) -> list[str]:
    texts = [str(text) for corpus in corpora for text in corpus.column("text") if text]
    if not texts:
        place = corpora[0].folder
        raise ConfigError("corpora.train", f"{place}: no utterance has a text.", "Name a corpus with texts.")
    return texts


def unknown_characters(corpora: Sequence[Corpus], tokenizer: Tokenizer) -> Counter[str]:
    """What the tokenizer cannot write, counted over all texts."""
    found: Counter[str] = Counter()
    for corpus in corpora:
        for text in corpus.column("text"):
            found.update(tokenizer.unknown_in(str(text)) if text else {})
    return found


def tell_unknown(split: str, found: Counter[str], say: Callable[[str], None]) -> None:
    if found:
        told = ", ".join(f"'{character}' {count:,}×" for character, count in found.most_common(_SHOWN))
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        say(f"{split}: the vocabulary lacks {told}{more}; they are learnt as unknown")


def possible(
    corpora: Sequence[Corpus],
    tokenizer: Tokenizer,
    num_frames: Callable[[np.ndarray], np.ndarray],
    *,
    sample_rate: int,
    shortest: float = 1.0,
) -> tuple[list[Corpus], list[TooLong]]:
    """The corpora without utterances that have too few frames for their text, and these; `shortest` is the factor by
    which augmentation may shorten them."""
    kept, left = [], []
    for corpus in corpora:
        frames = num_frames(np.floor(corpus.seconds * shortest * sample_rate).astype(np.int64))
        texts = [str(text or "") for text in corpus.column("text")]
        needed = np.array([max(frames_needed_by_ctc(ids), 1) for ids in tokenizer.encode_all(texts)], np.int64)
        is_possible = frames >= needed
        ids = corpus.column("id")
        left += [TooLong(str(ids[n]), int(frames[n]), int(needed[n])) for n in np.flatnonzero(~is_possible)]
        if is_possible.any():
            kept.append(corpus.where(is_possible))
    if not kept:
        problem = f"none of {len(left):,} utterances has frames enough for its text, e.g. {_told(left[0])}."
        raise ConfigError("corpora.train", problem, "Check texts against recordings, or use longer symbols.")
    return kept, left


def tell_too_long(left: Sequence[TooLong], say: Callable[[str], None]) -> None:
    if left:
        told = "; ".join(_told(one) for one in left[:_SHOWN])
        more = f"; and {len(left) - _SHOWN:,} more" if len(left) > _SHOWN else ""
        say(f"left out, since their texts need more frames than they have: {told}{more}")


def _told(one: TooLong) -> str:
    return f"'{one.id}' ({one.num_frames} frames, {one.needed} needed)"
