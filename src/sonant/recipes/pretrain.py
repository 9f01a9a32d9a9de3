"""Learning from speech alone: wav2vec 2.0's contrast or BEST-RQ's guesses, validated on fixed masks and by probes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Literal

from torch import Tensor, nn

from sonant.base import config as configs
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError, SonantError
from sonant.batches.bucketing import BucketingConfig, RandomConfig
from sonant.batches.loader import Loader, LoaderConfig
from sonant.checkpoints.wav2vec2_folder import read_wav2vec2
from sonant.models.best_rq import BestRq
from sonant.models.wav2vec2 import Wav2Vec2
from sonant.models.wav2vec2_pretraining import Wav2Vec2Pretraining
from sonant.recipes.pretrain_bundle import save_bundle
from sonant.recipes.pretrain_evaluation import MeasuringConfig
from sonant.recipes.pretrain_learning import (
    BestRqLearning,
    ContrastiveLearning,
    Learning,
    drawing_of,
    objective_of,
)
from sonant.recipes.pretrain_validation import Validation
from sonant.recipes.probing import ProbeConfig
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
        seed, drawing = config.trainer.seed, drawing_of(learning, model.encoder.num_frames, config.trainer.seed)
        source = speech_source(
            train,
            drawing,
            config.batches,
            config.crop_seconds,
            seed=seed,
            rank=engine.rank,
            world=engine.world,
        )
        measuring = MeasuringConfig(
            corpora=config.corpora,
            learning=learning,
            crop_seconds=config.crop_seconds,
            batch_seconds=config.validation_seconds,
            probe=config.probe,
        )
        made = Validation(engine, run, measuring, validation, model)
        console.say(f"{_millions(model)} to learn from {told(train)}; {told(validation)} to validate")
        return Parts(
            model=model,
            objective=objective_of(learning, seed),
            loader=Loader(source, LoaderConfig(pin_memory=engine.device.type == "cuda")),
            validate=made.validate,
            save_bundle=partial(save_bundle, config, train, made),
            config=configs.to_dict(config),
        )

    return parts


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


def _millions(model: nn.Module) -> str:
    return f"{sum(parameter.numel() for parameter in model.parameters()) / 1e6:.1f} million weights"
