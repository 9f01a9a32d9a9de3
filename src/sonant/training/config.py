"""Everything that can be set about a training, whatever is learnt; the values belong to a run really made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.training.optimizers import OptimizerConfig
from sonant.training.schedules import ScheduleConfig

Precision = Literal["fp32", "bf16", "fp16"]


@dataclass(frozen=True, kw_only=True)
class LimitsConfig:
    """When a training ends: whichever comes first."""

    max_steps: int | None = None
    max_epochs: float | None = None
    max_minutes: float | None = None  # of this start; it only stops, and no schedule depends on it
    patience: int | None = None  # validations without a better figure

    def __post_init__(self) -> None:
        for name in ("max_steps", "max_epochs", "max_minutes", "patience"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(name, f"{value} was found, above 0 is required.", "Raise it, or leave it out.")


@dataclass(frozen=True, kw_only=True)
class BestConfig:
    """Which validation is the best one: its weights become the bundle."""

    figure: str = "loss"  # of those that validation gives
    mode: Literal["min", "max"] = "min"
    min_delta: float = 0.0  # less than this is no improvement


@dataclass(frozen=True, kw_only=True)
class RhythmConfig:
    """How often things happen, in steps; 0 is never, but at the end."""

    log: Annotated[int, Within(1, 1e9)] = 25
    validate: Annotated[int, Within(0, 1e9)] = 500
    save: Annotated[int, Within(0, 1e9)] = 500
    save_minutes: Annotated[float, Within(0, 1e6)] = 15.0  # a state at least this often, whatever the steps; 0: off
    report: Annotated[int, Within(0, 1e9)] = 250

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class KeepConfig:
    last: Annotated[int, Within(1, 1000)] = 2  # states
    best: bool = True  # and the state of the best validation, where one was saved

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class AverageConfig:
    """The mean of the weights of several validations: often better than each of them, for nothing."""

    count: Annotated[int, Within(0, 100)] = 0  # how many; 0: off
    of: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class GuardConfig:
    """What is done when numbers go wrong."""

    max_skips: Annotated[int, Within(1, 1e6)] = 10  # steps in a row whose gradients are not finite
    on_failure: Literal["stop", "rollback"] = "stop"  # rollback: the last state, at a lower rate
    rollback_rate: Annotated[float, Within(0.01, 1)] = 0.5  # each rollback multiplies the rate by this
    max_rollbacks: Annotated[int, Within(0, 100)] = 3
    divergence: Annotated[float, Within(1, 1e9)] = 3.0  # times the lowest loss so far: told as divergence
    scan: bool = True  # runs the largest batch of every size once, before anything else
    max_memory_gb: Annotated[float, Within(0, 1e6)] = 0.0  # of a processor's memory; 0: what machine and limits allow

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    best: BestConfig = field(default_factory=BestConfig)
    rhythm: RhythmConfig = field(default_factory=RhythmConfig)
    keep: KeepConfig = field(default_factory=KeepConfig)
    average: AverageConfig = field(default_factory=AverageConfig)
    guard: GuardConfig = field(default_factory=GuardConfig)
    seed: int = 0
    precision: Precision = "fp32"
    batches_per_step: Annotated[int, Within(1, 1e6)] = 1  # gradients of so many batches are one update
    max_gradient_norm: Annotated[float, Within(0, 1e9)] = 1.0  # 0: no clipping
    gradient_parts: Annotated[int, Within(0, 9)] = 2  # words of names by which the log tells gradient norms; 0: off
    ema: Annotated[float, Within(0, 0.999999)] = 0.0  # decay of the moving average of weights; 0: off
    gradient_checkpointing: bool = False  # less memory for about a third more time
    compile: bool = False
    deterministic: bool = False  # on GPUs; processors always are
    sharded: bool = False  # FSDP2: each rank holds a share of the weights
    threads: Annotated[int, Within(0, 1024)] = 0  # of the processor; 0: OMP_NUM_THREADS, or as many as there are
    trackers: tuple[Literal["tensorboard", "trackio", "wandb"], ...] = ()
    project: str = "sonant"  # what trackers file a run under

    def __post_init__(self) -> None:
        check_fields(self)
