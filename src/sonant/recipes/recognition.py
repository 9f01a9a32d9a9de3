"""What recognisers of every kind have in common, from corpora to the parts of a training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import nn

from sonant.audio.augment.augmenter import Augmenter, CorpusAugmentation, WaveformAugmentation
from sonant.base import config as configs
from sonant.batches.bucketing import PlanConfig, SortingConfig
from sonant.batches.collate import collate_speech
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.batches.heard import HeardExamples, Precision
from sonant.batches.loader import Loader, LoaderConfig
from sonant.batches.source import CorpusSource
from sonant.corpus.manifest import Corpus
from sonant.objectives.hiding import HidingConfig
from sonant.objectives.loss import AnyObjective
from sonant.recipes.freezing import freeze, freeze_front_end
from sonant.recipes.hearing import heard_once
from sonant.recipes.recognition_validation import Measure, Validation
from sonant.recipes.speech import CorporaConfig, told
from sonant.recipes.transcripts import tell_unknown, unknown_characters
from sonant.text.coding import Tokenizer
from sonant.training.config import TrainerConfig
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.groups import freeze as freeze_groups
from sonant.training.parts import Parts
from sonant.training.run_folder import RunFolder


class Hides(Protocol):
    @property
    def hiding(self) -> HidingConfig: ...


class RecognitionConfig(Protocol):
    """The settings that all of them have."""

    @property
    def task(self) -> str: ...
    @property
    def corpora(self) -> CorporaConfig: ...
    @property
    def model(self) -> object: ...
    @property
    def start(self) -> str: ...
    @property
    def objective(self) -> Hides: ...
    @property
    def augmentations(self) -> tuple[WaveformAugmentation | CorpusAugmentation, ...]: ...
    @property
    def keep_heard(self) -> str: ...
    @property
    def keep_heard_gb(self) -> float: ...
    @property
    def keep_heard_precision(self) -> Precision: ...
    @property
    def freeze_front_end(self) -> bool: ...
    @property
    def freeze(self) -> tuple[str, ...]: ...
    @property
    def begins(self) -> Mapping[str, int]: ...
    @property
    def batches(self) -> PlanConfig: ...
    @property
    def validation_seconds(self) -> float: ...
    @property
    def trainer(self) -> TrainerConfig: ...


@dataclass(frozen=True)
class Learnt:
    """A model with what it learns, and what from."""

    config: RecognitionConfig
    model: Any
    objective: AnyObjective
    tokenizer: Tokenizer
    augmenter: Augmenter
    train: Sequence[Corpus]
    validation: Sequence[Corpus]


def recognition_parts(
    learnt: Learnt,
    engine: Engine,
    run: RunFolder,
    console: Console,
    measure: Measure,
    save_bundle: Callable[..., None],
) -> Parts:
    """What the trainer needs; `measure` gives a row for each utterance of a loader."""
    config, model, tokenizer = learnt.config, learnt.model, learnt.tokenizer
    placed = partial(CorpusSource, rank=engine.rank, world=engine.world)
    heard = ExampleConfig(sample_rate=model.sample_rate)
    changed = learnt.augmenter.waveform if config.augmentations else None
    examples = SpeechExamples(heard, seed=config.trainer.seed, encode=tokenizer.encode, augment=changed)
    known = heard_once(config, model, examples, learnt.train, console.say)
    source = placed(learnt.train, *known, config.batches, seed=config.trainer.seed)
    sorting = SortingConfig(max_seconds=config.validation_seconds)
    fixed = placed(learnt.validation, SpeechExamples(heard, encode=tokenizer.encode), collate_speech, sorting)
    split = config.corpora.validation_split
    validation = Validation(engine, run, Loader(fixed), measure, task=config.task, split=split)
    engine.on_main(lambda: validation.look_at(source.load(0, 0), tokenizer, model.num_frames))
    console.say(_told(learnt))
    return Parts(
        model=model,
        objective=learnt.objective,
        loader=Loader(source, loading(engine, hears=isinstance(known[0], HeardExamples))),
        validate=validation.validate,
        save_bundle=partial(save_bundle, config, model, tokenizer, learnt.train, validation),
        sections=validation.sections,
        config=configs.to_dict(config),
    )


def loading(engine: Engine, *, hears: bool) -> LoaderConfig:
    """Hearing wants all threads of a processor, as learning does: beside each other, each waits for the other."""
    takes_turns = hears and engine.device.type == "cpu" and torch.get_num_threads() > 1
    workers = 0 if takes_turns else LoaderConfig().workers
    return LoaderConfig(workers=workers, pin_memory=engine.device.type == "cuda")


def freeze_all(config: RecognitionConfig, model: nn.Module) -> None:
    """Everything that the settings want to stay as it is."""
    if config.freeze_front_end and (config.start or getattr(config.model, "folder", "")):
        freeze_front_end(model)
    freeze(model, config.freeze)
    freeze_groups(model, config.trainer.optimizer.groups)


def tell_all_unknown(
    config: RecognitionConfig,
    train: Sequence[Corpus],
    validation: Sequence[Corpus],
    tokenizer: Tokenizer,
    say: Callable[[str], None],
) -> None:
    for split, corpora in ((config.corpora.train_split, train), (config.corpora.validation_split, validation)):
        tell_unknown(split, unknown_characters(corpora, tokenizer), say)


def _told(learnt: Learnt) -> str:
    """What is about to be trained on what, in a line."""
    learning = sum(parameter.numel() for parameter in learnt.model.parameters() if parameter.requires_grad)
    return (
        f"{learning / 1e6:.2f} million weights to learn, {learnt.tokenizer.size:,} symbols; "
        f"{told(learnt.train)} to train on, {told(learnt.validation)} to validate"
    )
