"""Recognition by writing: Moonshine or Whisper, fine-tuned whole or from scratch, measured by word errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
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
from sonant.checkpoints.bundle import Bundle, open_bundle
from sonant.checkpoints.seq2seq_bundle import generation_of
from sonant.decoding.spelling import Spelling
from sonant.evaluation.table import Row
from sonant.evaluation.written import written_rows
from sonant.inference.writing import WritingConfig
from sonant.inference.writing_transcriber import WritingTranscriber
from sonant.models.writer import WriterConfig, limits_of, new_model
from sonant.objectives.seq2seq import Seq2Seq, Seq2SeqConfig
from sonant.recipes.freezing import beginnings
from sonant.recipes.recognition import Learnt, freeze_all, recognition_parts, tell_all_unknown
from sonant.recipes.seq2seq_bundle import save_bundle
from sonant.recipes.speech import CorporaConfig, check_given, training_corpora, validation_corpora
from sonant.recipes.transcripts import SPOKEN
from sonant.recipes.written_texts import WrittenTokenizerConfig, tell_unwritable, writable, written_tokenizer
from sonant.text.coding import Tokenizer
from sonant.text.normalize import Normalizer, NormalizerConfig
from sonant.text.prompts import Prompt, PromptConfig, prompt_for
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
    task: Literal["seq2seq"] = "seq2seq"
    corpora: CorporaConfig = field(default_factory=CorporaConfig)
    tokenizer: WrittenTokenizerConfig = field(default_factory=WrittenTokenizerConfig)
    model: WriterConfig = field(default_factory=WriterConfig)
    start: str = ""  # a bundle of this task to go on from: its model with all weights, and its tokenizer
    prompt: PromptConfig = field(default_factory=PromptConfig)
    objective: Seq2SeqConfig = field(default_factory=Seq2SeqConfig)
    decoding: WritingConfig = field(default_factory=WritingConfig)
    compared: NormalizerConfig = field(default_factory=lambda: SPOKEN)  # both texts, before errors are counted
    augmentations: tuple[WaveformAugmentation | CorpusAugmentation, ...] = ()
    keep_heard: str = "auto"  # where what frozen parts made of recordings is kept: a folder; auto: the cache; off
    keep_heard_gb: Annotated[float, Within(0.001, 1e6)] = 50.0  # of that folder, whoever uses it
    keep_heard_precision: Precision = "fp32"  # bf16 takes half the room
    freeze_front_end: bool = True  # of a folder: what makes frames of waveforms stays as it is
    freeze: tuple[str, ...] = ()  # names of parameters or modules: model.encoder; layers.0-5 is a range
    begins: dict[str, int] = field(default_factory=dict)  # such names, and the step from which on they learn
    batches: BucketingConfig | LengthGroupingConfig | RandomConfig = field(default_factory=BucketingConfig)
    validation_seconds: Annotated[float, Within(1, 1e6)] = 120.0  # of a batch
    trainer: TrainerConfig = field(default_factory=lambda: TrainerConfig(best=BestConfig(figure="wer")))

    def __post_init__(self) -> None:
        check_fields(self)
        for key, usual in (("model", WriterConfig()), ("tokenizer", WrittenTokenizerConfig())):
            if self.start and getattr(self, key) != usual:
                raise ConfigError(key, f"it comes from start ({self.start}).", "Leave one of the two out.")


def build(config: Config) -> Build:
    """Everything that the trainer needs, on each rank."""
    check_given(config.corpora)
    start = _opened(config.start) if config.start else None

    def parts(engine: Engine, run: RunFolder, console: Console) -> Parts:
        train, validation = training_corpora(config.corpora), validation_corpora(config.corpora)
        folder = config.start or config.model.folder
        tokenizer = engine.on_main(lambda: written_tokenizer(config.tokenizer, folder, run, train))
        tell_all_unknown(config, train, validation, tokenizer, console.say)
        model, generation = _model(config, tokenizer, start), generation_of(folder)
        prompt = _prompt(config, tokenizer, start, model.config, generation)
        augmenter = Augmenter(config.augmentations, config.trainer.seed, CorpusSounds)
        limits = limits_of(model)
        train, left, densest = writable(train, tokenizer, limits, len(prompt.ids), augmenter.seconds_after)
        tell_unwritable(config.corpora.train_split, left, limits, console.say)
        decoding = replace(config.decoding, tokens_per_second=config.decoding.tokens_per_second or densest)
        begins = beginnings(model, config.begins)
        objective = Seq2Seq(config.objective, model.num_frames, prompt, seed=config.trainer.seed, begins=begins)
        spelling, normalized = Spelling(tokenizer), Normalizer(config.compared)

        def measure(model: nn.Module, loader: Loader[SpeechBatch]) -> list[Row]:
            transcriber = WritingTranscriber(model, spelling, prompt, decoding, device=str(engine.device))
            return written_rows(transcriber, loader, objective, normalized)

        learnt = Learnt(config, model, objective, tokenizer, augmenter, train, validation)
        return recognition_parts(
            learnt, engine, run, console, measure, partial(save_bundle, prompt, decoding, generation)
        )

    return parts


def _opened(folder: str) -> Bundle:
    bundle = open_bundle(folder)
    bundle.require_task("seq2seq")
    return bundle


def _prompt(
    config: Config, tokenizer: Tokenizer, start: Bundle | None, described: Any, generation: Mapping[str, Any]
) -> Prompt:
    """What a bundle goes on with, unless another language or task is wanted."""
    if start and config.prompt == PromptConfig():
        return Prompt.of(start.description.text["prompt"])
    first, end = described.decoder_start_token_id, described.eos_token_id
    return prompt_for(tokenizer, config.prompt, first, end, generation)


def _model(config: Config, tokenizer: Tokenizer, start: Bundle | None) -> Any:
    seed_all(config.trainer.seed, 0)  # every rank begins with the same weights
    if start:
        model = start.model()
    else:
        specials = {"bos": tokenizer.bos_id, "eos": tokenizer.eos_id, "pad": tokenizer.pad_id}
        model = new_model(config.model, tokenizer.size, specials)
    freeze_all(config, model)
    return model
