"""Recognition with CTC: any speech encoder fine-tuned, or a small Conformer from scratch, measured by word errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from torch import nn

from sonant.audio.augment.augmenter import Augmenter, CorpusAugmentation, WaveformAugmentation
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.batches.batch import SpeechBatch
from sonant.batches.bucketing import BucketingConfig, LengthGroupingConfig, RandomConfig
from sonant.batches.heard import Precision
from sonant.batches.loader import Loader
from sonant.batches.sounds import CorpusSounds
from sonant.checkpoints.bundle import open_bundle
from sonant.corpus.manifest import Corpus
from sonant.decoding.spelling import Spelling
from sonant.evaluation.recognition import recognition_rows
from sonant.evaluation.table import Row
from sonant.models.conformer import Conformer, ConformerConfig
from sonant.models.ctc import EncoderConfig, new_model
from sonant.models.language_adapters import check_language, freeze_the_rest
from sonant.objectives.ctc import Ctc, CtcConfig
from sonant.recipes.ctc_bundle import save_bundle
from sonant.recipes.freezing import beginnings
from sonant.recipes.recognition import Learnt, freeze_all, recognition_parts, tell_all_unknown
from sonant.recipes.speech import CorporaConfig, check_given, training_corpora, validation_corpora
from sonant.recipes.transcripts import (
    TranscriptTokenizerConfig,
    possible,
    tell_too_long,
    transcript_tokenizer,
)
from sonant.text.coding import Tokenizer
from sonant.training.config import BestConfig, TrainerConfig
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.parts import Parts
from sonant.training.randomness import seed_all
from sonant.training.run_folder import RunFolder
from sonant.training.start import Build

DATA_KEY, BATCH_KEY = "corpora.train", "batches.max_seconds"


@dataclass(frozen=True, kw_only=True)
class Config:
    task: Literal["ctc"] = "ctc"
    corpora: CorporaConfig = field(default_factory=CorporaConfig)
    tokenizer: TranscriptTokenizerConfig = field(default_factory=TranscriptTokenizerConfig)
    model: ConformerConfig | EncoderConfig = field(default_factory=ConformerConfig)
    start: str = ""  # a bundle of this task to go on from: its model with all weights, and its tokenizer
    objective: CtcConfig = field(default_factory=CtcConfig)
    augmentations: tuple[WaveformAugmentation | CorpusAugmentation, ...] = ()
    keep_heard: str = "auto"  # where what frozen parts made of recordings is kept: a folder; auto: the cache; off
    keep_heard_gb: Annotated[float, Within(0.001, 1e6)] = 50.0  # of that folder, whoever uses it
    keep_heard_precision: Precision = "fp32"  # bf16 takes half the room
    freeze_front_end: bool = True  # of a folder: what makes frames of waveforms stays as it is
    freeze: tuple[str, ...] = ()  # names of parameters or modules; layers.0-5 is a range
    begins: dict[str, int] = field(default_factory=dict)  # such names, and the step from which on they learn
    batches: BucketingConfig | LengthGroupingConfig | RandomConfig = field(default_factory=BucketingConfig)
    validation_seconds: Annotated[float, Within(1, 1e6)] = 120.0  # of a batch
    trainer: TrainerConfig = field(default_factory=lambda: TrainerConfig(best=BestConfig(figure="wer")))

    def __post_init__(self) -> None:
        check_fields(self)
        if self.start and self.model != ConformerConfig():
            raise ConfigError("model", f"it comes from start ({self.start}).", "Leave one of the two out.")
        if self.start and self.tokenizer != TranscriptTokenizerConfig():
            raise ConfigError("tokenizer", f"it comes from start ({self.start}).", "Leave one of the two out.")


def build(config: Config) -> Build:
    """Everything that the trainer needs, on each rank."""
    check_given(config.corpora)

    def parts(engine: Engine, run: RunFolder, console: Console) -> Parts:
        train, validation = training_corpora(config.corpora), validation_corpora(config.corpora)
        tokenizer = engine.on_main(lambda: _tokenizer(config, run, train))
        tell_all_unknown(config, train, validation, tokenizer, console.say)
        model: Any = _model(config, tokenizer, console)
        augmenter = Augmenter(config.augmentations, config.trainer.seed, CorpusSounds)
        train, left = possible(
            train,
            tokenizer,
            model.num_frames,
            sample_rate=model.sample_rate,
            shortest=augmenter.shortest_factor,
        )
        tell_too_long(left, console.say)
        spelling = Spelling(tokenizer)
        objective = Ctc(
            config.objective,
            model.num_frames,
            spelling.blank_id,
            seed=config.trainer.seed,
            begins=beginnings(model, config.begins),
        )

        def measure(model: nn.Module, loader: Loader[SpeechBatch]) -> list[Row]:
            return recognition_rows(model, loader, spelling, objective, device=engine.device)

        learnt = Learnt(config, model, objective, tokenizer, augmenter, train, validation)
        return recognition_parts(learnt, engine, run, console, measure, save_bundle)

    return parts


def _tokenizer(config: Config, run: RunFolder, train: Sequence[Corpus]) -> Tokenizer:
    folder, adapter = config.start or getattr(config.model, "folder", ""), getattr(config.model, "adapter", None)
    if adapter is None:
        return transcript_tokenizer(config.tokenizer, folder, run, train)
    check_language(folder, adapter)
    return transcript_tokenizer(config.tokenizer, "" if adapter.new else folder, run, train, adapter.language)


def _model(config: Config, tokenizer: Tokenizer, console: Console) -> nn.Module:
    seed_all(config.trainer.seed, 0)  # every rank begins with the same weights
    if config.start:
        bundle = open_bundle(config.start)
        bundle.require_task("ctc")
        model = bundle.model()
    elif isinstance(config.model, ConformerConfig):
        model = Conformer(config.model, tokenizer.size)
    else:
        hides_frames = config.objective.hiding.frames is not None
        assert tokenizer.blank_id is not None
        model, missing = new_model(config.model, tokenizer.size, tokenizer.blank_id, hides_frames=hides_frames)
        if missing:
            console.say(f"the weights are those of {config.model.folder}; begun anew: {', '.join(missing)}")
    if getattr(model, "language", ""):
        freeze_the_rest(model)
    freeze_all(config, model)
    return model
