"""A small training of a real kind: sequences of uneven length, a masked network with dropout, two counts in one loss.

Imported by tests, and run as a program where a test needs processes: `python small_training.py RUN key=value …`,
also under `torchrun`. Keys are those of `SmallConfig`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from sonant.base import config as configs
from sonant.base.errors import SonantError
from sonant.base.lengths import Lengths
from sonant.base.randomness import generator_for
from sonant.batches.bucketing import RandomConfig, plan
from sonant.batches.loader import Loader, LoaderConfig
from sonant.batches.report import Tally
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.objectives.loss import Loss, Mean, Part, Watch
from sonant.training.config import TrainerConfig
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.parts import Parts
from sonant.training.run_folder import RunFolder
from sonant.training.scan import scan
from sonant.training.start import train


@dataclass(frozen=True, kw_only=True)
class SmallConfig:
    num_utterances: int = 40
    batch_size: int = 4
    width: int = 8
    dropout: float = 0.0
    workers: int = 0
    bad: tuple[str, ...] = ()  # utterances that hold a NaN
    seconds_per_step: float = 0.0
    kill_at: str = ""  # where the process ends itself by SIGKILL: a bundle's step, say "bundle:20"
    validates_alone: bool = False  # only the first rank has something to validate
    ballast: int = 0  # floats that each frame costs in the forward pass
    trainer: TrainerConfig = field(default_factory=TrainerConfig)


@dataclass(frozen=True, kw_only=True)
class Sequences:
    ids: tuple[str, ...]
    inputs: Tensor  # (B, T, 3)
    targets: Tensor  # (B, T)
    lengths: Lengths

    def __len__(self) -> int:
        return len(self.ids)

    def tally(self) -> Tally:
        frames = self.inputs.shape[0] * self.inputs.shape[1]
        total = self.lengths.total if len(self) else 0
        return Tally(num_batches=1, num_utterances=len(self), tokens=total, padded_tokens=frames)

    def pin_memory(self) -> Sequences:
        return self

    def to(self, device, *, non_blocking: bool = False) -> Sequences:
        lengths = Lengths(self.lengths.values.to(device))
        return replace(self, inputs=self.inputs.to(device), targets=self.targets.to(device), lengths=lengths)


class SequenceSource:
    """Utterance n has 2 to 12 frames; what it holds follows from its id."""

    num_loaded = 0  # batches, by all of them

    def __init__(self, config: SmallConfig, rank: int = 0, world: int = 1) -> None:
        self.config, self.rank, self.world = config, rank, world
        self.sizes = np.array([2 + n * 7 % 11 for n in range(config.num_utterances)], np.float64)

    def plan(self, epoch: int):
        planning = RandomConfig(batch_size=self.config.batch_size)
        return plan(self.sizes, planning, seed=7, epoch=epoch, rank=self.rank, world=self.world)

    def num_steps(self, epoch: int) -> int:
        return len(self.plan(epoch))

    def num_overlong(self, epoch: int) -> int:
        return 0

    def largest(self) -> list[int]:
        return self.plan(0).largest(self.sizes)

    def conditions(self) -> Mapping[str, str]:
        return {"utterances": str(self.config.num_utterances), "ranks": str(self.world)}

    def load(self, epoch: int, step: int) -> Sequences:
        SequenceSource.num_loaded += 1
        if self.config.seconds_per_step:
            time.sleep(self.config.seconds_per_step)
        return collated([self.utterance(int(row)) for row in self.plan(epoch)[step]])

    def utterance(self, row: int) -> tuple[str, np.ndarray, np.ndarray]:
        id = f"u{row:03d}"
        inputs = generator_for(1, 0, id).standard_normal((int(self.sizes[row]), 3)).astype(np.float32)
        targets = np.tanh(inputs @ np.array([1.0, -2.0, 0.5], np.float32)).cumsum().astype(np.float32) / 3
        if id in self.config.bad:
            inputs[0, 0] = np.nan
        return id, inputs, targets


def collated(examples: list[tuple[str, np.ndarray, np.ndarray]]) -> Sequences:
    longest = max((len(targets) for _, _, targets in examples), default=0)
    inputs, targets = np.zeros((len(examples), longest, 3), np.float32), np.zeros((len(examples), longest), np.float32)
    for row, (_, x, y) in enumerate(examples):
        inputs[row, : len(x)], targets[row, : len(y)] = x, y
    lengths = Lengths(torch.tensor([len(y) for _, _, y in examples], dtype=torch.int64))
    ids = tuple(id for id, _, _ in examples)
    return Sequences(ids=ids, inputs=torch.from_numpy(inputs), targets=torch.from_numpy(targets), lengths=lengths)


class SmallModel(nn.Module):
    """A recurrent layer between two linear ones; padding lies behind what counts and changes nothing."""

    def __init__(self, width: int, dropout: float, ballast: int = 0) -> None:
        super().__init__()
        self.enter = nn.Linear(3, width)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.remember = nn.GRU(width, width, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.leave = nn.Linear(width, 1)
        self.dropout = nn.Dropout(dropout)
        self.ballast = ballast
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for layer in self.layers:
            x = x + torch.relu(layer(self.dropout(x)))
        if self.ballast:
            x = x + (x.unsqueeze(-1) * torch.ones(self.ballast, device=x.device)).tanh().sum(-1)
        if self.training:
            self.seen += 1
        x, _ = self.remember(self.norm(x))
        return self.leave(x).squeeze(-1)


class SmallObjective:
    """Squared errors over frames, and the error of each utterance's last frame over utterances."""

    watches = (
        Watch(figure="spread", below=0.05, for_steps=20, says="all answers are the same.", action="Lower the rate."),
    )

    def counts(self, batch: Sequences) -> dict[str, float]:
        return {"frames": float(batch.lengths.total if len(batch) else 0), "utterances": float(len(batch))}

    def __call__(self, model: nn.Module, batch: Sequences, step: int) -> Loss:
        answers = model(batch.inputs)
        errors = (answers.float() - batch.targets).square()
        mask = torch.arange(errors.shape[1]).to(errors.device) < batch.lengths.values[:, None]
        last = errors.gather(1, batch.lengths.values[:, None] - 1)
        parts = {
            "frames": Part(total=(errors * mask).sum(), count="frames"),
            "ends": Part(total=last.sum(), count="utterances", weight=0.3),
        }
        return Loss(
            parts=parts, health={"spread": Mean(answers.detach().float().std(correction=0) * len(batch), len(batch))}
        )


def build(config: SmallConfig):
    def made(engine: Engine, run: RunFolder, console: Console) -> Parts:
        torch.manual_seed(3)
        model = SmallModel(config.width, config.dropout, config.ballast)
        source = SequenceSource(config, engine.rank, engine.world)
        held = SequenceSource(replace(config, bad=(), seconds_per_step=0.0))
        validation = collated([held.utterance(row) for row in range(0, config.num_utterances, 3)])
        objective = SmallObjective()

        def validate(model: nn.Module, step: int) -> dict[str, float]:
            torch.rand(3)  # a careless validation draws
            _kill(config, f"validate:{step}")
            found = 0.0
            if engine.is_main or not config.validates_alone:
                with torch.no_grad():
                    loss = objective(model, validation.to(engine.device), step)
                found = float(loss.divided_by(objective.counts(validation)))
            return {"loss": max(engine.gather(found))}

        def save_bundle(folder, weights, step, metrics) -> None:
            description = Description(task="pretrain", architecture="small", config={}, step=step, metrics=metrics)
            write_bundle(folder, description, weights, {"README.md": f"step {step}\n"})

        loader = Loader(source, LoaderConfig(workers=config.workers))
        return Parts(model=model, objective=objective, loader=loader, validate=validate, save_bundle=save_bundle)

    return made


def _kill(config: SmallConfig, place: str) -> None:
    if config.kill_at == place:
        os.kill(os.getpid(), signal.SIGKILL)


def configured(*settings: str) -> SmallConfig:
    """Settings for tests: no scan, small steps, everything often."""
    usual = [
        "trainer.limits.max_steps=24",
        "trainer.guard.scan=false",
        "trainer.rhythm.log=4",
        "trainer.rhythm.validate=6",
        "trainer.rhythm.save=8",
        "trainer.threads=1",
        "trainer.optimizer.rate=0.01",
    ]
    return configs.load(SmallConfig, None, [*usual, *settings])


def run_small(place, *settings: str, **options):
    """A whole training in this process."""
    config = configured(*settings)
    return train(str(place), config, build(config), is_silent=options.pop("is_silent", True), **options)


def main(words: list[str]) -> int:
    settings = [word for word in words[1:] if "=" in word]
    config = configured(*settings)
    if "--scan" in words:
        engine = Engine(config.trainer, cpu=True)
        scan(build(config)(engine, RunFolder(words[0]), Console(is_silent=True)), engine, config.trainer)
        return 0
    if "--kill-after" in words:  # seconds, by the clock
        seconds = float(words[words.index("--kill-after") + 1])
        timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGKILL))
        timer.daemon = True
        timer.start()
    command = [sys.executable, __file__, words[0], *settings, "--scan"]
    resume = words[words.index("--resume") + 1] if "--resume" in words else None
    try:
        result = train(words[0], config, build(config), scan_command=command, resume=resume)
    except SonantError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(result.reason)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
