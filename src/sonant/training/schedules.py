"""How the learning rate changes: each schedule is a function of the step alone, never of the clock or of the past.

factor = schedule(ScheduleConfig(kind="cosine", warmup=0.1), total_steps=1000)
rate = base_rate * factor(step)          # step: updates done before this one
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError

Factor = Callable[[int], float]
Kind = Literal[
    "linear",
    "cosine",
    "cosine_with_restarts",
    "polynomial",
    "constant",
    "inverse_square_root",
    "one_cycle",
    "exponential",
    "tri_stage",
]
_ENDLESS = frozenset(("constant", "inverse_square_root"))  # those that need no end


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    kind: Kind = "cosine"
    warmup: Annotated[float, Within(0, 1e9)] = 0.05  # below 1: a share of all steps; from 1 on: steps
    final: Annotated[float, Within(0, 1)] = 0.0  # share of the rate that is left at the end
    power: Annotated[float, Within(0.1, 10)] = 1.0  # of polynomial
    cycles: Annotated[int, Within(1, 1000)] = 1  # of cosine_with_restarts
    start: Annotated[float, Within(0, 1)] = 0.0  # share of the rate that warming up begins with
    hold: Annotated[float, Within(0, 1)] = 0.4  # of tri_stage: share of all steps at the full rate

    def __post_init__(self) -> None:
        check_fields(self)
        if self.kind == "exponential" and not self.final:
            raise ConfigError("final", "an exponential decay never reaches 0.", "Give a share above 0, say 0.01.")

    def warmup_steps(self, total_steps: int | None) -> int:
        """The steps of warming up; a share needs to know of how many."""
        if self.warmup >= 1:
            return round(self.warmup)
        if not self.warmup:
            return 0
        if total_steps is None:
            raise ConfigError(
                "warmup", "a share of all steps is asked for, but nobody said how many.", "Give max_steps."
            )
        return round(self.warmup * total_steps)


def schedule(config: ScheduleConfig, total_steps: int | None) -> Factor:
    """The share of the base rate at each step; behind the last one it stays where it ended."""
    if total_steps is None and config.kind not in _ENDLESS:
        problem = f"'{config.kind}' needs to know how many steps there will be."
        raise ConfigError("kind", problem, "Give max_steps or max_epochs, or choose constant or inverse_square_root.")
    warmup = config.warmup_steps(total_steps)
    if total_steps is not None and warmup >= total_steps > 1:
        problem = f"warming up takes {warmup} steps of {total_steps}: the full rate is never reached."
        raise ConfigError("warmup", problem, "Shorten it, or raise max_steps.")
    decay = _decay(config, total_steps, warmup)

    def factor(step: int) -> float:
        if step < warmup:
            share = (step + 1) / warmup
            share = 0.5 * (1 - math.cos(math.pi * share)) if config.kind == "one_cycle" else share
            return config.start + (1 - config.start) * share
        return decay(step)

    return factor


def _decay(config: ScheduleConfig, total_steps: int | None, warmup: int) -> Factor:
    """What follows warming up, as a function of the step."""
    if config.kind == "constant":
        return lambda step: 1.0
    if config.kind == "inverse_square_root":  # Noam, scaled so that its peak is 1
        return lambda step: math.sqrt(max(warmup, 1) / max(step + 1, 1)) if step + 1 > max(warmup, 1) else 1.0
    assert total_steps is not None
    span = max(total_steps - warmup, 1)
    shape = _shape(config, total_steps, span)
    return lambda step: shape(min((step - warmup) / span, 1.0))


def _shape(config: ScheduleConfig, total_steps: int, span: int) -> Callable[[float], float]:
    """The fall from 1 to `final` over a progress from 0 to 1."""
    final = config.final

    def between(share: float) -> float:
        return final + (1 - final) * share

    def cosine(progress: float) -> float:
        return between(0.5 * (1 + math.cos(math.pi * progress)))

    def restarting(progress: float) -> float:
        return between(0.0) if progress >= 1 else cosine((progress * config.cycles) % 1.0)

    held = min(config.hold * total_steps / span, 1.0)

    def tri_stage(progress: float) -> float:
        if progress <= held:
            return 1.0
        share: float = (final or 0.01) ** ((progress - held) / (1 - held))
        return share

    shapes: dict[str, Callable[[float], float]] = {
        "linear": lambda progress: between(1 - progress),
        "polynomial": lambda progress: between((1 - progress) ** config.power),
        "cosine": cosine,
        "one_cycle": cosine,
        "cosine_with_restarts": restarting,
        "exponential": lambda progress: float(final**progress),
        "tri_stage": tri_stage,
    }
    return shapes[config.kind]
