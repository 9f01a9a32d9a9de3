"""A training as a state on disk, and back: all that the loop changes, and under which conditions."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from sonant.checkpoints import state as states
from sonant.checkpoints.state import State, read_state, verify_state
from sonant.training.randomness import generators, restore_generators
from sonant.training.shares import whole

if TYPE_CHECKING:
    from sonant.training.trainer import Trainer


def save_run(trainer: Trainer) -> None:
    """Writes a state of all ranks, by the first of them; removes the states that are not kept any more."""
    engine, selection = trainer.engine, trainer.selection
    tensors = {"weights": engine.weights(trainer.model), "optimizer": trainer.optimizer.state()}
    if selection.ema:
        tensors["ema"] = {name: whole(tensor) for name, tensor in selection.ema.state().items()}
    ranks = engine.gather((generators(), trainer.figures.state(), trainer.loader.state()))
    tensors |= {f"rank-{rank}": found for rank, (found, _, _) in enumerate(ranks)}
    values = {
        "step": trainer.step,
        "validated_step": selection.validated_step,
        "finished_step": selection.finished_step,
        "rate_scale": trainer.rate_scale,
        "guard": trainer.guard.state(),
        "best": selection.best.state(),
        "averaging": selection.averaging.state(),
        "scaler": engine.scaler.state_dict() if engine.scaler else None,
        "figures": [figures for _, figures, _ in ranks],
        "loaders": [place for _, _, place in ranks],
        "conditions": conditions(trainer),
    }

    def write() -> None:
        run, log = trainer.run_folder, trainer.journal.log
        values["log_bytes"] = log.size()
        folder = states.write_state(run.states, trainer.step, values, tensors)
        run.send_folder(f"states/{os.path.basename(folder)}", states.DESCRIPTION)
        run.send_file("metrics.jsonl")
        for name in states.remove_states(run.states, keep=_kept(trainer)):
            run.remove_remote(f"states/{name}")
        selection.averaging.tidy()

    engine.on_main(write)
    trainer.journal.pace.saved()


def restore_run(trainer: Trainer, resume: str | None = None, *, is_quiet: bool = False) -> int:
    """Takes up the newest whole state, if there is one, or the one asked for; gives its step."""
    engine = trainer.engine
    folder = engine.on_main(lambda: _wanted(trainer, resume))
    if folder is None:
        engine.on_main(lambda: trainer.journal.log.cut(0))
        return -1
    found = read_state(folder, is_verified=True) if os.path.isdir(folder) else None
    if not all(engine.gather(found is not None)):  # a rank on a machine that does not see the folder
        found = engine.on_main(lambda: found)
    assert found
    differences = _take_up(trainer, found)
    if not is_quiet:
        trainer.journal.console.say(f"going on from step {found.step:,}")
        _tell_changes(trainer, found, differences)
    return found.step


def _wanted(trainer: Trainer, resume: str | None) -> str | None:
    """The folder of the state to go on from; those behind one that was asked for belong to another future."""
    own, say = trainer.run_folder.states, trainer.journal.console.say
    if resume:
        step = int(verify_state(resume)["step"])
        if gone := states.remove_states(own, keep=set(range(step + 1))):
            say(f"removed, since the run goes on from step {step:,}: {', '.join(gone)}")
        return resume
    for candidate in states.whole_states(own):
        if isinstance(candidate, str):
            return candidate
        say(f"{candidate.where}: {candidate.problem} It is left alone, and an older one is used.")
    return None


def conditions(trainer: Trainer) -> dict[str, str]:
    """What a bit-identical run depends on, beside its data."""
    return {
        "machine": platform.machine(),
        "torch": torch.__version__,
        "device": trainer.engine.device.type,
        "threads": str(torch.get_num_threads()),
        "ranks": str(trainer.engine.world),
        "precision": trainer.config.precision,
    }


def _take_up(trainer: Trainer, found: State) -> list[str]:
    """Puts everything back; gives the sentences on how batches differ from those of before."""
    values, engine, selection = found.values, trainer.engine, trainer.selection
    engine.load_weights(trainer.model, found.tensors["weights"])
    trainer.optimizer.restore(found.tensors["optimizer"])
    if selection.ema and "ema" in found.tensors:
        selection.ema.restore(found.tensors["ema"])
    trainer.step = trainer.saved_step = found.step
    trainer.rate_scale = values["rate_scale"]
    trainer.guard.restore(values["guard"])
    selection.validated_step, selection.finished_step = values["validated_step"], values["finished_step"]
    selection.best.restore(values["best"])
    selection.averaging.restore(values["averaging"])
    if engine.scaler and values["scaler"]:
        engine.scaler.load_state_dict(values["scaler"])
    rank = min(engine.rank, len(values["loaders"]) - 1)
    if engine.rank < len(values["figures"]):
        trainer.figures.restore(values["figures"][rank])
        restore_generators(found.tensors[f"rank-{rank}"])
    engine.on_main(lambda: trainer.journal.log.cut(values["log_bytes"]))
    return trainer.loader.restore(values["loaders"][rank])


def _tell_changes(trainer: Trainer, found: State, differences: Sequence[str]) -> None:
    """One line, where the run is no longer the same to the bit."""
    before, now = found.values["conditions"], conditions(trainer)
    changed = [f"{name}: {before.get(name)} before, {now[name]} now" for name in now if before.get(name) != now[name]]
    if changed := [*changed, *differences]:
        told = "; ".join(changed)
        trainer.journal.console.say(f"from here on not bit-identical to a run that was never stopped ({told})")


def _kept(trainer: Trainer) -> set[int]:
    steps = [states.step_of(folder) for folder in states.list_states(trainer.run_folder.states)]
    kept = set(steps[: trainer.config.keep.last])
    return kept | {trainer.selection.best.step} if trainer.config.keep.best else kept
