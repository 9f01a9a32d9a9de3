"""What notices that a training goes wrong, and says so in words.

Gradients that are not finite skip their step; too many in a row end the run with the module that broke first and the
utterances at hand. Figures of health that stay beyond their bounds are told, and may end the run or roll it back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sonant.base.errors import SonantError
from sonant.objectives.loss import Watch
from sonant.training.config import GuardConfig

_SHOWN = 8  # ids in a sentence


class TrainingError(SonantError):
    """A training that cannot go on by itself."""


class RollbackError(Exception):
    """Asks the loop to go back to the last state."""


class Guard:
    """Counts what went wrong; its memory travels in the run's state."""

    def __init__(self, config: GuardConfig, watches: Iterable[Watch]) -> None:
        self.config = config
        self.watches = (*watches, _divergence(config), _dead_gradients())
        self.num_skips = self.skips_in_row = 0
        self.num_rollbacks = 0
        self.lowest_loss = math.inf
        self.beyond = [0] * len(self.watches)  # steps in a row
        self.told: set[int] = set()

    def saw(self, *, is_finite: bool) -> bool:
        """Notes a step; gives back whether it was finite."""
        self.skips_in_row = 0 if is_finite else self.skips_in_row + 1
        self.num_skips += not is_finite
        return is_finite

    def look(self, figures: Mapping[str, float], step: int, steps: int) -> list[Watch]:
        """The watches that have just begun to be right, after a stretch of so many steps with these figures."""
        loss = figures.get("loss", math.nan)
        if math.isfinite(loss):
            self.lowest_loss = min(self.lowest_loss, loss)
            figures = {**figures, "loss_over_lowest": loss / self.lowest_loss if self.lowest_loss > 0 else 1.0}
        begun = []
        for number, watch in enumerate(self.watches):
            value = figures.get(watch.figure, math.nan)
            is_beyond = step > watch.after_step and math.isfinite(value) and watch.is_beyond(value)
            self.beyond[number] = self.beyond[number] + steps if is_beyond else 0
            if not is_beyond:
                self.told.discard(number)
            elif self.beyond[number] >= watch.for_steps and number not in self.told:
                self.told.add(number)
                begun.append(watch)
        return begun

    def start_anew(self, num_rollbacks: int) -> None:
        """Forgets what was seen, but not how often it came to that."""
        self.num_rollbacks, self.skips_in_row = num_rollbacks, 0
        self.beyond, self.told = [0] * len(self.watches), set()

    def state(self) -> dict[str, Any]:
        names = ("num_skips", "skips_in_row", "num_rollbacks", "beyond")
        values = {name: getattr(self, name) for name in names}
        lowest = self.lowest_loss if math.isfinite(self.lowest_loss) else None
        return {**values, "beyond": list(self.beyond), "told": sorted(self.told), "lowest_loss": lowest}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.num_skips, self.skips_in_row = state["num_skips"], state["skips_in_row"]
        self.num_rollbacks, self.told = state["num_rollbacks"], set(state["told"])
        self.lowest_loss = math.inf if state["lowest_loss"] is None else state["lowest_loss"]
        if len(state["beyond"]) == len(self.watches):
            self.beyond = list(state["beyond"])


def diagnosis(learner: nn.Module, batches: Sequence[Any], run: Any) -> str:
    """Which batch breaks, whose utterances it holds, and which module or parameter breaks first."""
    for name, parameter in learner.named_parameters():
        if not torch.isfinite(parameter).all():
            return f"the weight '{name}' itself is not finite"
    for batch in batches:
        broken = _first_broken(learner, batch, run)
        if broken:
            return f"{broken}, with {told_ids(batch.ids)}"
    ids = [id for batch in batches for id in batch.ids]
    return f"no module's output was at fault, so the gradients themselves overflow, with {told_ids(ids)}"


def _first_broken(learner: nn.Module, batch: Any, run: Any) -> str:
    found: list[str] = []

    def watch(name: str, module: nn.Module) -> Any:
        def look(_: nn.Module, __: Any, output: Any) -> None:
            if not found and any(not torch.isfinite(t).all() for t in _tensors(output)):
                found.append(f"'{name}' ({type(module).__name__}) is the first module whose output is not finite")

        return look

    hooks = [module.register_forward_hook(watch(name, module)) for name, module in learner.named_modules() if name]
    try:
        with torch.no_grad():
            loss = run(batch)
        if not found and not math.isfinite(loss):
            found.append("the loss itself is not finite")
    finally:
        for hook in hooks:
            hook.remove()
    return found[0] if found else ""


def _tensors(output: Any) -> Iterable[Tensor]:
    if isinstance(output, Tensor):
        return [output] if output.is_floating_point() else []
    if isinstance(output, Mapping):
        return [t for value in output.values() for t in _tensors(value)]
    if isinstance(output, list | tuple):
        return [t for value in output for t in _tensors(value)]
    return []


def told_ids(ids: Sequence[str]) -> str:
    """A few ids and how many more."""
    shown = ", ".join(f"'{id}'" for id in ids[:_SHOWN])
    return f"{shown} and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else shown or "no utterance"


def _divergence(config: GuardConfig) -> Watch:
    return Watch(
        figure="loss_over_lowest",
        above=config.divergence,
        for_steps=100,
        says=f"the loss has stayed above {config.divergence:g} times its lowest: the training diverges.",
        action="Lower optimizer.rate, or lengthen schedule.warmup.",
        is_fatal=True,
    )


def _dead_gradients() -> Watch:
    return Watch(
        figure="gradient_norm",
        below=1e-7,
        for_steps=100,
        says="gradients are all but zero: nothing is learnt any more.",
        action="Look at the loss: if it is high, a part is saturated or frozen; lower the rate, or free it.",
    )
