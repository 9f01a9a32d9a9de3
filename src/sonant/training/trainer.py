"""The loop that every task learns by: counts first, then gradients of totals over counts, checked before they are used.

It knows a model, an objective, batches and an optimizer. How a validation is made and what a bundle holds, the recipe
hands in as functions.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack
from typing import Any

from torch import Tensor, nn

from sonant.base.errors import ConfigError
from sonant.batches.report import EpochReport
from sonant.checkpoints.metrics_log import MetricsLog
from sonant.objectives.loss import Mean
from sonant.training.config import TrainerConfig
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.figures import Figures, merged
from sonant.training.gradient_parts import by_part
from sonant.training.groups import freeze
from sonant.training.guards import Guard, RollbackError, TrainingError, diagnosis
from sonant.training.interrupts import Interrupts
from sonant.training.journal import Journal
from sonant.training.learner import Learner
from sonant.training.optimizers import Optimizer
from sonant.training.page import write_page
from sonant.training.parts import Parts, TrainResult
from sonant.training.progress_state import restore_run, save_run
from sonant.training.randomness import seed_all, undisturbed
from sonant.training.results import write_results
from sonant.training.run_folder import RunFolder
from sonant.training.schedules import schedule
from sonant.training.selection import Selection
from sonant.training.trackers import open_trackers


class Trainer:
    """One training, from its newest state to its end."""

    def __init__(self, parts: Parts, config: TrainerConfig, run: RunFolder, engine: Engine, console: Console) -> None:
        self.parts, self.config, self.run_folder, self.engine = parts, config, run, engine
        self.model, self.objective, self.loader = parts.model, parts.objective, parts.loader
        freeze(self.model, config.optimizer.groups)
        seed_all(config.seed, engine.rank)
        if config.gradient_checkpointing:
            _recompute(self.model)
        self.learner = Learner(self.model, self.objective, is_sharded=config.sharded)
        engine.prepare(self.learner)
        self.optimizer = Optimizer(self.model, config.optimizer)
        self.gradient_parts = by_part(self.optimizer.names, config.gradient_parts)
        self.total_steps = self._total_steps()
        self.factor = schedule(config.schedule, self.total_steps)
        trackers = open_trackers(config.trackers if engine.is_main else (), run.local, config.project, parts.config)
        self.journal = Journal(engine, MetricsLog(run.metrics), console, trackers)
        self.selection = Selection(parts, config, run, engine, self.journal, self.total_steps)
        self.guard = Guard(config.guard, self.objective.watches)
        self.figures, self.interrupts = Figures(), Interrupts(config.limits.max_minutes)
        self.step = self.saved_step = 0
        self.rate_scale = 1.0  # less than 1 after a rollback
        self.is_stopping = False

    def run(self, resume: str | None = None) -> TrainResult:
        """Trains to the end, or until something asks for a stop; what is reached is saved either way."""
        began_at = restore_run(self, resume)
        with ExitStack() as stack:
            stack.enter_context(self.interrupts.listening())
            stack.callback(self.journal.close)
            stack.callback(self.loader.close)
            self.journal.pace.start(self.step)
            batches = self.loader.endless(self._epoch_ended)
            while not (self._is_done() or self.is_stopping):
                try:
                    self._step(batches)
                    self._rounds()
                except RollbackError as error:
                    batches.close()
                    self._roll_back(error)
                    batches = self.loader.endless(self._epoch_ended)
            return self._finish(is_news=self.step != began_at)

    def _step(self, batches: Generator[Any, None, None]) -> None:
        """One update of the weights."""
        step = [next(batches) for _ in range(self.config.batches_per_step)]
        own = [self.objective.counts(batch) for batch in step]
        # Requests to stop travel with the counts, so that all ranks end after the same step.
        counts = self.engine.sum_over_ranks(_added(own) | {"/stop": float(self.interrupts.is_due())})
        self.is_stopping = counts.pop("/stop") > 0
        self.model.train()
        self.optimizer.zero()
        seen = []
        for number, batch in enumerate(step):
            is_last = number == len(step) - 1
            # By everything seen in the step on every rank: a short batch must not weigh as a long one.
            loss, figures = self.engine.learn(batch, own[number], counts, self.step, is_last=is_last)
            seen.append({**figures, "loss": Mean(loss, float(is_last and self.engine.is_main))})
            self.journal.pace.count(batch.tally())
        norm = self.engine.gradient_norm(self.optimizer)
        is_finite = bool(norm.isfinite())
        if is_finite:
            seen.append(self._norms(norm))
            self.engine.clip(self.optimizer, norm)
            self.optimizer.set_rate(self._rate(self.step))
        self.engine.update(self.optimizer, is_finite=is_finite)
        if is_finite:
            self.selection.moved()
            self.figures.add(*seen)
        self.step += 1
        if not self.guard.saw(is_finite=is_finite):
            self._skipped(step)

    def _norms(self, norm: Tensor) -> dict[str, Mean]:
        """Of all gradients before they are clipped, and, in the last step before a line of the log, of each part's."""
        is_told = (self.step + 1) % self.config.rhythm.log == 0
        parts = self.gradient_parts.items() if is_told else ()
        of_parts = {f"gradient_norm/{part}": Mean(self.engine.norm_of(parameters)) for part, parameters in parts}
        return {"gradient_norm": Mean(norm), **of_parts}

    def _rate(self, step: int) -> float:
        """The share of the base rate that a step has."""
        return self.factor(step) * self.rate_scale

    def _rounds(self) -> None:
        """What is due after a step: the log, a validation, a state, the page."""
        rhythm = self.config.rhythm
        if self.step % rhythm.log == 0:
            self._log()
        if rhythm.validate and self.step % rhythm.validate == 0:
            self.selection.validate(self.step)
        if (rhythm.save and self.step % rhythm.save == 0) or self._clock_says_save():
            self.save()
        if rhythm.report and self.step % rhythm.report == 0:
            self._report()

    def _log(self) -> None:
        """The mean figures since the last line, and what the guards make of them."""
        figures = merged(self.engine.gather(self.figures.state()))
        self.figures.clear()
        if not figures:
            return
        figures["rate"] = self.config.optimizer.rate * self._rate(max(self.step - 1, 0))
        if self.guard.num_skips:
            figures["skipped_steps"] = float(self.guard.num_skips)
        steps = self.journal.stretch(self.step, self.total_steps, figures)
        for watch in self.guard.look(figures, self.step, steps):
            self.journal.alarm(self.step, watch, figures.get(watch.figure))
            if watch.is_fatal:
                self._fail(watch.figure, watch.says, watch.action)

    def save(self) -> None:
        """Writes a state, once a step."""
        if self.saved_step != self.step:
            self.saved_step = self.step
            save_run(self)

    def _clock_says_save(self) -> bool:
        """All ranks ask the first one's clock, now and then."""
        minutes = self.config.rhythm.save_minutes
        if not minutes or self.step % self.config.rhythm.log:
            return False
        is_due = self.engine.is_main and self.journal.pace.seconds_since_save() > 60 * minutes
        return self.engine.sum_over_ranks({"due": float(is_due)})["due"] > 0

    def _epoch_ended(self, report: EpochReport) -> None:
        self.journal.epoch(self.step, report)

    def _skipped(self, step: list[Any]) -> None:
        """A step whose gradients were not finite: told with its utterances, and the end if it was one too many."""
        ids = [id for ids in self.engine.gather([id for batch in step for id in batch.ids]) for id in ids]
        self.journal.skipped(self.step, ids)
        if self.guard.skips_in_row >= self.config.guard.max_skips:
            with undisturbed(self.model):
                found = diagnosis(self.learner, step, self._loss_of)
            action = "Lower optimizer.rate, use bf16 or fp32, or look at the utterances named."
            self._fail("gradients", f"{self.guard.skips_in_row} steps in a row were not finite: {found}.", action)

    def _loss_of(self, batch: Any) -> float:
        """The loss of one batch by itself, as in training."""
        with self.engine.autocast():
            loss = self.objective(self.model, batch.to(self.engine.device), self.step)
            return float(loss.divided_by(self.objective.counts(batch)))

    def _fail(self, where: str, problem: str, action: str) -> None:
        """Rolls back where that is asked for and still allowed, and ends the run otherwise."""
        guard = self.config.guard
        if guard.on_failure == "rollback" and self.guard.num_rollbacks < guard.max_rollbacks and self.saved_step:
            raise RollbackError(problem)
        raise TrainingError(f"step {self.step:,}: {where}", problem, action)

    def _roll_back(self, error: RollbackError) -> None:
        """The last state again, at a lower rate; how often that happened is not forgotten."""
        num_rollbacks, scale = self.guard.num_rollbacks + 1, self.rate_scale * self.config.guard.rollback_rate
        restore_run(self, is_quiet=True)
        self.guard.start_anew(num_rollbacks)
        self.rate_scale = scale
        self.journal.rolled_back(self.step, scale, str(error))

    def _total_steps(self) -> int | None:
        """How many steps the run will have, by the limits that do not depend on what happens."""
        limits = self.config.limits
        found = [limits.max_steps] if limits.max_steps else []
        if limits.max_epochs:
            batches = self.loader.source.num_steps(0) * limits.max_epochs
            found.append(max(1, round(batches / self.config.batches_per_step)))
        return min(found) if found else None

    def _is_done(self) -> str:
        """Why there is nothing left to do; nothing where there is."""
        best, patience = self.selection.best, self.config.limits.patience
        if self.total_steps is not None and self.step >= self.total_steps:
            return f"all {self.total_steps:,} steps are done"
        if patience and best.num_worse >= patience:
            return f"{best.num_worse} validations in a row were no better than that of step {best.step:,}"
        return ""

    def _finish(self, *, is_news: bool) -> TrainResult:
        """The last validation, state and bundle; the results and the page."""
        is_finished = bool(self._is_done())
        reason = self._is_done() or self.interrupts.reason or "another rank was asked to stop"
        if is_finished:
            self._log()
            self.selection.finish(self.step)
        self.save()
        best = self.selection.best
        metrics = dict(best.figures)
        place = self.run_folder.place
        result = TrainResult(
            run=place, step=self.step, reason=reason, is_finished=is_finished, best_step=best.step, metrics=metrics
        )
        if is_news and self.engine.is_main:
            write_results(self.run_folder, result, self.journal.pace)
        self._report()
        self.journal.console.say(f"ended at step {self.step:,}: {reason}")
        return result

    def _report(self) -> None:
        if self.engine.is_main:
            write_page(self.run_folder, self.total_steps, self.parts.sections())
            self.run_folder.send_file("report.html")


def _recompute(model: nn.Module) -> None:
    """Gradient checkpointing, by whatever means the architecture has."""
    if not hasattr(model, "gradient_checkpointing_enable"):
        problem = f"the architecture {type(model).__name__} keeps all that it computes."
        raise ConfigError("trainer.gradient_checkpointing", problem, "Leave it out, and make batches smaller.")
    model.gradient_checkpointing_enable()  # type: ignore[operator]


def _added(counts: list[Mapping[str, float]]) -> dict[str, float]:
    """Counts of several batches together."""
    return {name: float(sum(one[name] for one in counts)) for name in counts[0]}
