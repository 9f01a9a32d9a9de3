"""The largest batch of every size is run once before anything else: memory runs out in the first minute or never.

On a GPU running out is an exception, so the scan runs in place and leaves nothing behind. On a processor it is a
kill, so a process of its own runs it, is watched while it grows, and its death is told as what it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sonant.base.errors import SonantError
from sonant.training.config import GuardConfig, TrainerConfig
from sonant.training.console import Console
from sonant.training.learner import Learner
from sonant.training.memory import allowed_bytes, peak_bytes, resident_bytes
from sonant.training.optimizers import Optimizer
from sonant.training.parts import Parts
from sonant.training.randomness import undisturbed

if TYPE_CHECKING:
    from sonant.training.engine import Engine
    from sonant.training.trainer import Trainer

_MARK = "sonant-scan "  # begins each line that a scanning process says
_OF_RANKS = frozenset(("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))
_WATCH_SECONDS = 0.05
_SHARE = 0.92  # of what is allowed: validation, pages and other processes need a little
_ACTION = "Make batches smaller (--find-batch finds a size that fits), or set trainer.gradient_checkpointing."


class OutOfMemoryError(SonantError):
    """A batch that does not fit, known before the training began."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A batch that is about to be run, or has been."""

    what: str  # the batch in words
    peak: int = 0  # bytes, after it


def largest_batches(parts: Parts) -> Iterator[Any]:
    """The largest batch of every size that the first epoch has."""
    source = parts.loader.source
    for step in source.largest():
        batch = source.load(0, step)
        if len(batch):
            yield batch


def scan(parts: Parts, engine: Engine, config: TrainerConfig) -> None:
    """What the process of its own does: a full update for each batch, saying before and after how it stands."""
    learner = Learner(parts.model, parts.objective)
    engine.prepare(learner)
    optimizer = Optimizer(parts.model, config.optimizer)
    parts.model.train()
    for batch in largest_batches(parts):
        _say(Tried(what=told(batch)))
        try:
            _update(batch, parts, engine, optimizer)
        except (MemoryError, RuntimeError) as error:
            if "memory" not in str(error):
                raise
            sys.exit(1)
        _say(Tried(what=told(batch), peak=peak_bytes()))


def scan_in_child(command: Sequence[str], config: GuardConfig, console: Console) -> int:
    """Runs the scan elsewhere and gives its peak in bytes; an OutOfMemoryError names the batch that did not fit."""
    allowed = int(config.max_memory_gb * 1e9) if config.max_memory_gb else int(allowed_bytes() * _SHARE)
    alone = {name: value for name, value in os.environ.items() if name not in _OF_RANKS}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=alone)
    watch = _Watch(child, allowed)
    last = Tried(what="the model itself")
    peak = 0
    assert child.stdout
    assert child.stderr
    for line in child.stdout:
        if line.startswith(_MARK):
            last = Tried(**json.loads(line.removeprefix(_MARK)))
            peak = max(peak, last.peak)
    errors = child.stderr.read()
    code = child.wait()
    watch.end()
    if code > 0 and "memory" not in errors and not last.peak and errors.strip():
        # Whatever it is, it will come up here as well, with its own words.
        console.say(f"the largest batches could not be tried: {errors.strip().splitlines()[-1]}")
        return 0
    if code or peak > allowed:
        found = f"{max(peak, watch.peak) / 1e9:.2f} GB were reached, {allowed / 1e9:.2f} GB are allowed"
        raise OutOfMemoryError(last.what, f"it does not fit in memory: {found}.", _ACTION)
    console.say(f"the largest batches fit: {peak / 1e9:.2f} GB of {allowed / 1e9:.2f} GB ({last.what})")
    return peak


def scan_here(trainer: Trainer) -> None:
    """The same on a GPU, forward and backward; weights, generators and buffers stay as they are."""
    engine, parts = trainer.engine, trainer.parts
    if trainer.config.sharded:
        return  # ranks would have to agree on each batch
    batch: Any = None
    with undisturbed(parts.model):
        parts.model.train()
        try:
            for batch in largest_batches(parts):
                counts = parts.objective.counts(batch)
                with engine.autocast():
                    loss, _ = trainer.learner(batch.to(engine.device), counts, counts, 0)
                loss.backward()
        except torch.OutOfMemoryError as error:
            free, total = torch.cuda.mem_get_info(engine.device)
            found = f"{(total - free) / 1e9:.2f} GB of {total / 1e9:.2f} GB were in use"
            raise OutOfMemoryError(told(batch), f"it does not fit on the device: {found}.", _ACTION) from error
        finally:
            trainer.optimizer.zero()
            torch.cuda.empty_cache()


def told(batch: Any) -> str:
    """A batch by what makes it large."""
    tally = batch.tally()
    size = f"{tally.padded_seconds:.1f} s" if tally.padded_seconds else f"{tally.padded_tokens:,} tokens"
    return f"a batch of {tally.num_utterances:,} ({size} with padding; '{batch.ids[0]}' first)"


class _Watch:
    """Ends a process that grows beyond its allowance, before the machine ends something else."""

    def __init__(self, child: subprocess.Popen[str], allowed: int) -> None:
        self.child, self.allowed, self.peak = child, allowed, 0
        _volunteer(child.pid)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._is_over.wait(_WATCH_SECONDS):
            self.peak = max(self.peak, resident_bytes(self.child.pid))
            if self.peak > self.allowed:
                self.child.kill()
                return

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()


def _volunteer(process: int) -> None:
    """If memory runs out all the same, the system should end this process and not us."""
    with suppress(OSError):
        Path(f"/proc/{process}/oom_score_adj").write_text("1000")


def _update(batch: Any, parts: Parts, engine: Engine, optimizer: Optimizer) -> None:
    counts = parts.objective.counts(batch)
    optimizer.zero()
    engine.learn(batch, counts, counts, 0, is_last=True)
    engine.update(optimizer, is_finite=True)


def _say(tried: Tried) -> None:
    print(_MARK + json.dumps(asdict(tried)), flush=True)
