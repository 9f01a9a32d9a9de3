"""A training from its settings to its end: who may write, what was set before, whether the largest batch fits, and go.

A recipe hands in how its parts are built; with that, this is the same for everything that can be learnt.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol

from sonant.base import config as configs
from sonant.base import storage
from sonant.base.document import flat, read_document
from sonant.training.config import TrainerConfig
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.parts import Parts, TrainResult
from sonant.training.run_folder import RunFolder
from sonant.training.scan import scan_here, scan_in_child
from sonant.training.trainer import Trainer

CONFIG = "config.yaml"
_SHOWN = 6  # changes in a sentence


class RunConfig(Protocol):
    """All settings of a run; those of the trainer among them."""

    @property
    def trainer(self) -> TrainerConfig: ...


Build = Callable[[Engine, RunFolder, Console], Parts]


def train(
    place: str,
    config: RunConfig,
    build: Build,
    *,
    resume: str | None = None,
    is_silent: bool = False,
    scan_command: Sequence[str] = (),
) -> TrainResult:
    """Trains in the folder or bucket `place`, from its newest state if it has one, or from the state `resume`.

    `scan_command` runs `scan` for the same settings in a process of its own, where running out of memory kills.
    """
    run, engine = RunFolder(place), Engine(config.trainer)
    console = Console(is_silent=is_silent or not engine.is_main)
    with ExitStack() as stack:
        stack.callback(engine.close)
        engine.on_main(lambda: _open(run, config, stack, console))
        if config.trainer.guard.scan and engine.device.type == "cpu" and scan_command and not run.has_state:
            engine.on_main(lambda: scan_in_child(scan_command, config.trainer.guard, console))
        trainer = Trainer(build(engine, run, console), config.trainer, run, engine, console)
        if config.trainer.guard.scan and engine.device.type != "cpu":
            scan_here(trainer)
        return trainer.run(resume)


def _open(run: RunFolder, config: RunConfig, stack: ExitStack, console: Console) -> None:
    """The folder is ours, holds what the bucket has, and says what it is trained with."""
    run.require_writable()
    stack.enter_context(run.held())
    run.fetch()
    if changes := _changes(run, config):
        told = "; ".join(changes[:_SHOWN]) + (f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else "")
        console.say(f"settings have changed since this run began ({told})")
    configs.save(config, run.path(CONFIG))
    run.send_file(CONFIG)


def _changes(run: RunFolder, config: RunConfig) -> list[str]:
    """`key: before -> now`, of a run that has begun."""
    if not run.has_state or not os.path.exists(run.path(CONFIG)):
        return []
    with storage.storage_errors(run.local):
        before = flat(read_document(run.path(CONFIG)).values)
    now = flat(configs.to_dict(config))
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [f"{name}: {before.get(name)} before, {now.get(name)} now" for name in names]
