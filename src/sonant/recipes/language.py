"""A causal language model: from scratch or from a folder, on corpora or texts, with perplexity as its measure."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

import numpy as np
from torch import Tensor, nn

from sonant.base import config as configs
from sonant.base import storage
from sonant.base.bounds import Within, check_fields
from sonant.batches.bucketing import RandomConfig, TokenBucketingConfig
from sonant.batches.loader import Loader, LoaderConfig
from sonant.batches.tokens.blocks import block_size
from sonant.batches.tokens.documents import Texts
from sonant.batches.tokens.rows import Packing
from sonant.batches.tokens.source import PackingConfig, TokenSource
from sonant.batches.tokens.spans import Spans
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.checkpoints.card import Card, card_text
from sonant.checkpoints.causal_bundle import causal_config, causal_files
from sonant.evaluation.language import document_rows, language_figures, score_documents
from sonant.evaluation.table import Evaluation, Facts, Row, fingerprint_of, write_evaluation
from sonant.inference.generation import GenerationConfig, generate
from sonant.models.causal import CausalConfig, load_model, max_positions, new_model
from sonant.models.causal_lora import merged
from sonant.objectives.next_token import NextToken, NextTokenConfig
from sonant.recipes.texts import TextsConfig, check_given, read_training_texts, token_spans
from sonant.reports.page import Block, section, table
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
TABLE, SAMPLES = "utterances.parquet", "samples.json"  # of the run: of its best weights, and of each validation
_NO_LIMIT = 1e9  # transformers writes 1e30 where a tokenizer knows no limit


@dataclass(frozen=True, kw_only=True)
class LanguageTokenizerConfig:
    """From a folder, from the model's folder, or trained on the texts of training."""

    folder: str = ""
    train: CharactersConfig | SubwordsConfig = field(default_factory=SubwordsConfig)
    max_characters: Annotated[int, Within(1, 1e12)] = 100_000_000  # of the texts, from their beginning


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    rows_per_batch: Annotated[int, Within(1, 1e6)] = 8
    num_samples: Annotated[int, Within(0, 100)] = 2  # texts to read, at each validation
    prompt: str = ""
    generation: GenerationConfig = field(default_factory=lambda: GenerationConfig(max_tokens=100))

    def __post_init__(self) -> None:
        check_fields(self)


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
            save_bundle=partial(_save_bundle, config, model, tokenizer, train, made),
            sections=made.sections,
            config=configs.to_dict(config),
        )

    return parts


def _tokenizer(config: Config, run: RunFolder, console: Console) -> Tokenizer:
    """The one that the run began with; at its beginning, one that is there or one that is trained."""
    kept = run.path("tokenizer")
    if os.path.isdir(kept):
        return load_tokenizer(kept)
    if folder := config.tokenizer.folder or config.model.folder:
        found = load_tokenizer(folder)
    else:
        texts = read_training_texts(config.texts, console.say)
        found = train_tokenizer(_first_of(texts, config.tokenizer.max_characters), config.tokenizer.train)
    with storage.storage_errors(kept):
        os.makedirs(kept + ".part", exist_ok=True)
        found.save(kept + ".part")
        os.rename(kept + ".part", kept)
    return load_tokenizer(kept)


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


class Validation:
    """What the trainer asks of the model from time to time; the table and the texts of the last time are kept."""

    def __init__(
        self, config: Config, engine: Engine, run: RunFolder, tokenizer: Tokenizer, spans: Spans, size: int
    ) -> None:
        self.config, self.engine, self.run, self.tokenizer, self.spans = config, engine, run, tokenizer, spans
        self.objective = NextToken(config.documents)
        self.source = TokenSource(
            spans,
            PackingConfig(block_size=size, packing=config.packing, is_shuffled=False),
            rows_per_batch=config.validation.rows_per_batch,
            rank=engine.rank,
            world=engine.world,
        )
        self.rows: tuple[Row, ...] = ()

    def validate(self, model: nn.Module, step: int) -> Mapping[str, float]:
        totals = score_documents(model, self.source, self.objective, device=self.engine.device)
        self.rows = document_rows(np.sum(self.engine.gather(totals), axis=0), self.spans, self.tokenizer)
        if self.engine.is_main and not self.engine.is_sharded:
            self._draw(model, step)
        return language_figures(self.rows)

    def write_table(self, bundle: str) -> None:
        """The rows behind the figures of the best weights."""
        facts = Facts(
            task="language",
            bundle=bundle,
            data=self.spans.file.fingerprint,
            split=self.config.texts.validation_split,
            settings={"block_size": self.source.packing.block_size},
        )
        write_evaluation(self.run.path(TABLE), Evaluation(facts, self.rows))
        self.run.send_file(TABLE)

    def sections(self) -> Sequence[Block]:
        """Texts that the model wrote, the newest first."""
        rows = [[step, text] for step, texts in sorted(self._samples().items(), reverse=True) for text in texts]
        columns, prompt = ["step", "text"], self.config.validation.prompt
        note = f"Drawn by itself behind \u201c{prompt}\u201d." if prompt else "Drawn by itself."
        return [section("Samples", table(columns, rows[:8], is_sortable=False), note=note)] if rows else []

    def _draw(self, model: nn.Module, step: int) -> None:
        wanted = self.config.validation
        if not wanted.num_samples:
            return
        draw = partial(generate, model, self.tokenizer, wanted.prompt, wanted.generation)
        texts = [wanted.prompt + draw(number=number) for number in range(wanted.num_samples)]
        found = {number: old for number, old in self._samples().items() if number < step} | {step: texts}
        storage.write_text(self.run.path(SAMPLES), json.dumps(found, ensure_ascii=False, indent=1))

    def _samples(self) -> dict[int, list[str]]:
        where = self.run.path(SAMPLES)
        found = json.loads(storage.read_bytes(where)) if os.path.exists(where) else {}
        return {int(step): texts for step, texts in found.items()}


def _save_bundle(
    config: Config,
    model: nn.Module,
    tokenizer: Tokenizer,
    train: Spans,
    validation: Validation,
    folder: str,
    weights: Mapping[str, Tensor],
    step: int,
    metrics: Mapping[str, float],
) -> None:
    size = validation.source.packing.block_size
    description = Description(
        task="language",
        architecture="causal",
        config=causal_config(model),
        evaluation={
            "texts": configs.to_dict(config.texts),
            "block_size": size,
            "packing": config.packing,
            "rows_per_batch": config.validation.rows_per_batch,
            "documents": configs.to_dict(config.documents),
        },
        metrics=dict(metrics),
        data={
            "training": f"{train.num_tokens:,} tokens of {len(train):,} documents ({train.file.fingerprint})",
            "validation": f"{validation.spans.num_tokens:,} tokens of {len(validation.spans):,} documents",
        },
        step=step,
    )
    files = causal_files(model, tokenizer, size, config.model.folder)
    files["README.md"] = card_text(_card(config, model), description)
    write_bundle(folder, description, merged(model, weights), files)
    if validation.rows:
        validation.write_table(fingerprint_of(storage.join(folder, "model.safetensors")))


def _card(config: Config, model: nn.Module) -> Card:
    kind = config.model.folder or config.model.architecture
    count = sum(parameter.numel() for parameter in model.parameters())
    return Card(
        title=f"A causal language model ({kind})",
        summary=f"{count / 1e6:.1f} million weights, trained on texts with Sonant.",
        usage={
            "Text that follows a prompt": 'sonant generate bundle --prompt "It was"',
            "Scores of texts, for choosing among what a recogniser may have heard": _SCORES,
            "With transformers": _TRANSFORMERS,
        },
        pipeline="text-generation",
        library="transformers",
        tags=(config.model.architecture,) if not config.model.folder else (),
        datasets=[os.path.basename(place.rstrip("/")) for place in config.texts.train],
        base=config.model.folder,
        settings=configs.differences(config),
        limits="It has learnt which texts are likely, not which are true, and repeats what its texts hold.",
    )


_SCORES = """\
import sonant
model = sonant.load("bundle")
model.score(["recognise speech", "wreck a nice beach"])"""
_TRANSFORMERS = """\
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("bundle")
model = AutoModelForCausalLM.from_pretrained("bundle")"""


def _told(model: nn.Module, tokenizer: Tokenizer, train: Spans, validation: Spans, size: int) -> str:
    """What is about to be trained on what, in a line."""
    count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return (
        f"{count:,} weights to learn, {tokenizer.size:,} symbols, {size:,} tokens at once; "
        f"{train.num_tokens:,} tokens of {len(train):,} documents to train on, "
        f"{validation.num_tokens:,} of {len(validation):,} to validate"
    )
