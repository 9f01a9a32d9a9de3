"""Learning from speech alone: wav2vec 2.0's contrast or BEST-RQ's guesses, validated on fixed masks and by probes."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal

from torch import Tensor, nn

from sonant.base import config as configs
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError, SonantError
from sonant.batches.bucketing import BucketingConfig, RandomConfig, SortingConfig
from sonant.batches.loader import Loader, LoaderConfig
from sonant.batches.masking import MaskingConfig
from sonant.batches.pretraining import Drawing, DrawingConfig, PretrainingBatch
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.checkpoints.card import Card, card_text
from sonant.checkpoints.wav2vec2_folder import read_wav2vec2, wav2vec2_files
from sonant.checkpoints.wav2vec2_weights import to_transformers
from sonant.corpus.manifest import Corpus
from sonant.evaluation.pretraining import pretraining_figures, pretraining_totals
from sonant.models.best_rq import BestRq, BestRqConfig
from sonant.models.wav2vec2 import Wav2Vec2
from sonant.models.wav2vec2_pretraining import Wav2Vec2Pretraining, Wav2Vec2PretrainingConfig
from sonant.objectives.best_rq import BestRqObjective
from sonant.objectives.contrastive import Contrastive, ContrastiveConfig
from sonant.recipes.probing import ProbeConfig, probed
from sonant.recipes.speech import (
    CorporaConfig,
    check_given,
    speech_source,
    told,
    training_corpora,
    validation_corpora,
)
from sonant.training.config import TrainerConfig
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.parts import Parts
from sonant.training.randomness import seed_all
from sonant.training.run_folder import RunFolder
from sonant.training.start import Build

DATA_KEY, BATCH_KEY = "corpora.train", "batches.max_seconds"


@dataclass(frozen=True, kw_only=True)
class ContrastiveLearning:
    """wav2vec 2.0 as published."""

    kind: Literal["contrastive"] = "contrastive"
    model: Wav2Vec2PretrainingConfig = field(default_factory=Wav2Vec2PretrainingConfig)
    draws: DrawingConfig = field(default_factory=DrawingConfig)
    objective: ContrastiveConfig = field(default_factory=ContrastiveConfig)


@dataclass(frozen=True, kw_only=True)
class BestRqLearning:
    """Simpler and steadier: no codebook that could collapse."""

    kind: Literal["best_rq"] = "best_rq"
    model: BestRqConfig = field(default_factory=BestRqConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)


@dataclass(frozen=True, kw_only=True)
class Config:
    task: Literal["pretrain"] = "pretrain"
    corpora: CorporaConfig = field(default_factory=CorporaConfig)
    start: str = ""  # a bundle or a folder of transformers to go on from; its architecture is taken, too
    learning: ContrastiveLearning | BestRqLearning = field(default_factory=ContrastiveLearning)
    crop_seconds: Annotated[float, Within(0.1, 1e5)] = 15.6  # of a longer utterance, another stretch in each epoch
    batches: BucketingConfig | RandomConfig = field(default_factory=BucketingConfig)
    validation_seconds: Annotated[float, Within(1, 1e6)] = 60.0  # of a batch
    probe: ProbeConfig = field(default_factory=ProbeConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)

    def __post_init__(self) -> None:
        check_fields(self)
        default: ContrastiveLearning | BestRqLearning = type(self.learning)()
        if self.start and self.learning.model.encoder != default.model.encoder:
            problem = f"the encoder comes from start ({self.start})."
            raise ConfigError("learning.model.encoder", problem, "Leave one of the two out.")


def build(config: Config) -> Build:
    """Everything that the trainer needs, on each rank."""
    check_given(config.corpora)

    def parts(engine: Engine, run: RunFolder, console: Console) -> Parts:
        if config.probe.corpus and engine.is_sharded:
            raise ConfigError("probe.corpus", "a probe needs the whole encoder on one rank.", "Leave it out.")
        seed_all(config.trainer.seed, 0)  # every rank begins with the same weights
        model, learning = _model(config, console)
        train, validation = training_corpora(config.corpora), validation_corpora(config.corpora)
        seed, ranks = config.trainer.seed, {"rank": engine.rank, "world": engine.world}
        drawing = _drawing(learning, model, seed)
        source = speech_source(train, drawing, config.batches, config.crop_seconds, seed=seed, **ranks)
        # Seed 0 whatever the run's: figures of several seeds are of the same hidden frames.
        fixed = speech_source(
            validation,
            replace(drawing, seed=0),
            SortingConfig(max_seconds=config.validation_seconds),
            config.crop_seconds,
            **ranks,
        )
        objective = _objective(learning, seed)
        console.say(f"{_millions(model)} to learn from {told(train)}; {told(validation)} to validate")
        return Parts(
            model=model,
            objective=objective,
            loader=Loader(source, LoaderConfig(pin_memory=engine.device.type == "cuda")),
            validate=Validation(config, engine, objective, Loader(fixed)).validate,
            save_bundle=partial(_save_bundle, config, learning, train),
            config=configs.to_dict(config),
        )

    return parts


Learning = ContrastiveLearning | BestRqLearning


def _model(config: Config, console: Console) -> tuple[Wav2Vec2Pretraining | BestRq, Learning]:
    """The model, and what is learnt with the architecture that it really has."""
    learning, weights = config.learning, None
    if config.start:
        found, weights = read_wav2vec2(config.start)
        if isinstance(learning, ContrastiveLearning):
            learning = replace(learning, model=found)
        else:
            learning = replace(learning, model=replace(learning.model, encoder=found.encoder))
    if isinstance(learning, ContrastiveLearning):
        model: Wav2Vec2Pretraining | BestRq = Wav2Vec2Pretraining(learning.model)
    else:
        model = BestRq(Wav2Vec2(learning.model.encoder), learning.model.targets)
    if weights is not None:
        _load(model, weights, config.start, console)
    return model, learning


def _load(model: nn.Module, weights: Mapping[str, Tensor], where: str, console: Console) -> None:
    """The encoder whole; heads that the folder lacks begin anew."""
    fitting = {name: tensor for name, tensor in weights.items() if name in model.state_dict()}
    told = model.load_state_dict(fitting, strict=False)
    # A checkpoint that was never trained with hidden frames has no vector for them.
    missing = [name for name in told.missing_keys if name.startswith("encoder.") and "hidden_frame" not in name]
    if missing:
        problem = f"weights of the encoder are missing: {', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}."
        raise SonantError(where, problem, "Name a folder with a whole encoder.")
    anew = f"; begun anew: {', '.join(told.missing_keys)}" if told.missing_keys else ""
    console.say(f"{len(fitting)} weights are those of {where}{anew}")


def _drawing(learning: Learning, model: Wav2Vec2Pretraining | BestRq, seed: int) -> Drawing:
    if isinstance(learning, ContrastiveLearning):
        return Drawing(model.encoder.num_frames, learning.draws, seed)
    return Drawing(model.encoder.num_frames, DrawingConfig(masking=learning.masking, num_negatives=0), seed)


def _objective(learning: Learning, seed: int) -> Contrastive | BestRqObjective:
    if isinstance(learning, ContrastiveLearning):
        return Contrastive(learning.objective, seed=seed)
    return BestRqObjective(seed=seed)


class Validation:
    """What the trainer asks of the model from time to time."""

    def __init__(
        self, config: Config, engine: Engine, objective: Contrastive | BestRqObjective, loader: Loader[PretrainingBatch]
    ) -> None:
        self.config, self.engine, self.objective, self.loader = config, engine, objective, loader

    def validate(self, model: Any, step: int) -> Mapping[str, float]:
        totals = pretraining_totals(model, self.objective, self.loader, self.engine.device)
        figures = pretraining_figures(self.engine.gather(totals))
        if not self.config.probe.corpus:
            return figures
        return figures | self.engine.on_main(lambda: self._probed(model))

    def _probed(self, model: Any) -> dict[str, float]:
        found = probed(model.encoder, self.config.probe, device=self.engine.device)
        interval = found.interval()
        bounds = {"probe_low": interval.low, "probe_high": interval.high}
        return {"probe": interval.value} | ({} if math.isnan(interval.low) else bounds)  # one speaker has none


def _save_bundle(
    config: Config,
    learning: Learning,
    train: Sequence[Corpus],
    folder: str,
    weights: Mapping[str, Tensor],
    step: int,
    metrics: Mapping[str, float],
) -> None:
    encoder = learning.model.encoder
    is_contrastive = isinstance(learning, ContrastiveLearning)
    description = Description(
        task="pretrain",
        architecture="wav2vec2" if is_contrastive else "best_rq",
        config=configs.to_dict(learning.model),
        front_end={"kind": "waveform", "sample_rate": 16000, "normalize": encoder.normalize},
        evaluation={
            "corpora": configs.to_dict(config.corpora),
            "learning": configs.to_dict(learning),
            "crop_seconds": config.crop_seconds,
            "batch_seconds": config.validation_seconds,
        },
        metrics=dict(metrics),
        data={"training": told(train)},
        step=step,
    )
    files = wav2vec2_files(learning.model if isinstance(learning, ContrastiveLearning) else None, encoder)
    files["README.md"] = card_text(_card(config), description)
    write_bundle(folder, description, to_transformers(weights), files)


def _card(config: Config) -> Card:
    return Card(
        title="A speech encoder (wav2vec 2.0)",
        summary="Pretrained on speech without labels, with Sonant. It gives a frame each 20 ms, for other tasks.",
        usage={"With transformers": _TRANSFORMERS},
        pipeline="feature-extraction",
        library="transformers",
        tags=("wav2vec2",),
        datasets=[os.path.basename(place.rstrip("/")) for place in config.corpora.train],
        base=config.start,
        settings=configs.differences(config),
        limits="It writes nothing by itself: fine-tune it. It knows the kinds of speech that it has heard.",
    )


_TRANSFORMERS = """\
from transformers import AutoFeatureExtractor, AutoModel
listener = AutoFeatureExtractor.from_pretrained("bundle")
model = AutoModel.from_pretrained("bundle")"""


def _millions(model: nn.Module) -> str:
    return f"{sum(parameter.numel() for parameter in model.parameters()) / 1e6:.1f} million weights"
