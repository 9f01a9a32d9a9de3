"""A causal language model: from scratch or from a folder, on corpora or texts, with perplexity as its measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

from torch import nn

from sonant.base import config as configs
from sonant.base.bounds import Within
from sonant.batches.bucketing import RandomConfig, TokenBucketingConfig
from sonant.batches.loader import Loader, LoaderConfig
from sonant.batches.tokens.blocks import block_size
from sonant.batches.tokens.documents import Texts
from sonant.batches.tokens.rows import Packing
from sonant.batches.tokens.source import PackingConfig, TokenSource
from sonant.batches.tokens.spans import Spans
from sonant.models.causal import CausalConfig, load_model, max_positions, new_model
from sonant.objectives.next_token import NextToken, NextTokenConfig
from sonant.recipes.language_bundle import save_bundle
from sonant.recipes.language_validation import Validation, ValidationConfig
from sonant.recipes.run_files import kept_tokenizer
from sonant.recipes.texts import TextsConfig, check_given, read_training_texts, token_spans
from sonant.text.special_names import settings_in
from sonant.text.subword_training import SubwordsConfig
from sonant.text.tokenizer import CharactersConfig, Tokenizer, load_tokenizer, train_tokenizer
from sonant.training.config import TrainerConfig
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.parts import Parts
from sonant.training.randomness import seed_all
from sonant.training.run_folder import RunFolder
from sonant.training.start import Build

DATA_KEY, BATCH_KEY = "texts.train", "batches.max_tokens"
_NO_LIMIT = 1e9  # transformers writes 1e30 where a tokenizer knows no limit


@dataclass(frozen=True, kw_only=True)
class LanguageTokenizerConfig:
    """From a folder, from the model's folder, or trained on the texts of training."""

    folder: str = ""
    train: CharactersConfig | SubwordsConfig = field(default_factory=SubwordsConfig)
    max_characters: Annotated[int, Within(1, 1e12)] = 100_000_000  # of the texts, from their beginning


@dataclass(frozen=True, kw_only=True)
class Config:
    task: Literal["language"] = "language"
    texts: TextsConfig = field(default_factory=TextsConfig)
    tokenizer: LanguageTokenizerConfig = field(default_factory=LanguageTokenizerConfig)
    model: CausalConfig = field(default_factory=CausalConfig)
    block_size: int | None = None  # tokens seen at once; None: what tokenizer and model allow, at most 1024
    packing: Packing = "stream"
    documents: NextTokenConfig = field(default_factory=NextTokenConfig)
    batches: RandomConfig | TokenBucketingConfig = field(default_factory=TokenBucketingConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)


def build(config: Config) -> Build:
    """Everything that the trainer needs, on each rank."""
    check_given(config.texts)

    def parts(engine: Engine, run: RunFolder, console: Console) -> Parts:
        tokenizer = engine.on_main(lambda: _tokenizer(config, run, console))
        train, validation = engine.one_after_the_other(lambda: token_spans(config.texts, tokenizer, console.say))
        model, size = _model(config, tokenizer, console)
        packing = PackingConfig(block_size=size, packing=config.packing)
        seed, rank, world = config.trainer.seed, engine.rank, engine.world
        source = TokenSource(train, packing, config.batches, seed=seed, rank=rank, world=world)
        made = Validation(config, engine, run, tokenizer, validation, size)
        console.say(_told(model, tokenizer, train, validation, size))
        return Parts(
            model=model,
            objective=NextToken(config.documents),
            loader=Loader(source, LoaderConfig(workers=1)),
            validate=made.validate,
            save_bundle=partial(save_bundle, config, model, tokenizer, train, made),
            sections=made.sections,
            config=configs.to_dict(config),
        )

    return parts


def _tokenizer(config: Config, run: RunFolder, console: Console) -> Tokenizer:
    """The one that the run began with; at its beginning, one that is there or one that is trained."""

    def found() -> Tokenizer:
        if folder := config.tokenizer.folder or config.model.folder:
            return load_tokenizer(folder)
        texts = read_training_texts(config.texts, console.say)
        return train_tokenizer(_first_of(texts, config.tokenizer.max_characters), config.tokenizer.train)

    return kept_tokenizer(run, found)


def _first_of(texts: Texts, num_characters: int) -> Iterator[str]:
    """As much of the texts as a tokenizer needs to see; a stream may have no end."""
    for stretch in texts.stretches():
        yield stretch.text
        num_characters -= len(stretch.text)
        if num_characters <= 0:
            return


def _model(config: Config, tokenizer: Tokenizer, console: Console) -> tuple[nn.Module, int]:
    """The model, and how many tokens it sees at once."""
    seed_all(config.trainer.seed, 0)  # every rank begins with the same weights
    if config.model.folder:
        model = load_model(config.model, tokenizer.size)
        size, warnings = block_size(config.block_size, _limit(config), max_positions(model))
    else:
        positions = config.model.settings.get("max_position_embeddings") or config.model.settings.get("n_positions")
        size, warnings = block_size(config.block_size, _limit(config), positions)
        specials = {"bos": tokenizer.bos_id, "eos": tokenizer.eos_id, "pad": tokenizer.blank_id}
        known = {name: id for name, id in specials.items() if id is not None}
        model = new_model(config.model, tokenizer.size, size, known)
    for warning in warnings:
        console.say(warning)
    return model, size


def _limit(config: Config) -> int | None:
    """How many tokens the folder of the tokenizer says at most; a number beyond all models means none."""
    folder = config.tokenizer.folder or config.model.folder
    found = settings_in(folder).get("model_max_length") if folder else None
    return int(found) if found and found < _NO_LIMIT else None


def _told(model: nn.Module, tokenizer: Tokenizer, train: Spans, validation: Spans, size: int) -> str:
    """What is about to be trained on what, in a line."""
    count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return (
        f"{count:,} weights to learn, {tokenizer.size:,} symbols, {size:,} tokens at once; "
        f"{train.num_tokens:,} tokens of {len(train):,} documents to train on, "
        f"{validation.num_tokens:,} of {len(validation):,} to validate"
    )
