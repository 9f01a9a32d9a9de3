"""Which weights are kept: validations, the best of them as the bundle, and the mean of several."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from torch import Tensor

from sonant.training.averaging import Averaging
from sonant.training.best import Best
from sonant.training.config import TrainerConfig
from sonant.training.ema import MovingAverage
from sonant.training.engine import Engine
from sonant.training.journal import Journal
from sonant.training.parts import Parts
from sonant.training.randomness import undisturbed
from sonant.training.run_folder import RunFolder


class Selection:
    """Validates a model and keeps what is worth keeping; its memory travels in the run's state."""

    def __init__(
        self,
        parts: Parts,
        config: TrainerConfig,
        run: RunFolder,
        engine: Engine,
        journal: Journal,
        total_steps: int | None,
    ) -> None:
        self.parts, self.config, self.run_folder = parts, config, run
        self.engine, self.journal, self.total_steps = engine, journal, total_steps
        self.model = parts.model
        self.ema = MovingAverage(parts.model, config.ema) if config.ema else None
        self.best = Best(config.best)
        self.averaging = Averaging(run.path("averages"), config.average, config.best)
        self.validated_step = self.finished_step = 0

    def moved(self) -> None:
        """The weights have changed: so does their average."""
        if self.ema:
            self.ema.update()

    def validate(self, step: int) -> None:
        """Measures the weights of this step, once; the best become the bundle."""
        if self.parts.validate is None or self.validated_step == step:
            return
        self.validated_step = step
        with self._weights_to_keep():
            figures = self._figures(step)
            self.journal.validated("validation", step, self.total_steps, figures)
            is_best = self.best.take(figures, step)
            value = figures[self.config.best.figure]
            if is_best or self.averaging.wants(value):
                self._keep(step, figures, value, is_best=is_best)

    def finish(self, step: int) -> None:
        """The last validation, or the bundle of a run without any; then the mean, if it is better than the best."""
        if self.finished_step == step:
            return
        self.finished_step = step
        if self.parts.validate is None:
            with self._weights_to_keep():
                weights = self.engine.weights(self.model)
            self.engine.on_main(lambda: self._write_bundle(weights, step, {}))
            return
        self.validate(step)
        if len(self.averaging.kept) > 1:
            self._try_mean(step)

    def _figures(self, step: int) -> dict[str, float]:
        assert self.parts.validate
        with self.journal.pace.paused(), undisturbed(self.model), self.engine.measurable(self.model):
            self.model.eval()
            return dict(self.parts.validate(self.model, step))

    def _keep(self, step: int, figures: Mapping[str, float], value: float, *, is_best: bool) -> None:
        weights, is_wanted = self.engine.weights(self.model), self.averaging.wants(value)

        def keep() -> None:
            if is_wanted:
                self.averaging.take(step, value, weights)
            if is_best:
                self._write_bundle(weights, step, figures)

        self.engine.on_main(keep)
        if is_wanted and not self.engine.is_main:
            self.averaging.note(step, value)

    def _try_mean(self, step: int) -> None:
        live = self.engine.weights(self.model)
        self.engine.load_weights(self.model, self.engine.on_main(self.averaging.mean))
        figures = self._figures(step)
        self.journal.validated("average", step, self.total_steps, figures)
        if self.best.is_better(figures[self.config.best.figure]):
            self.best.take(figures, step)
            weights = self.engine.weights(self.model)
            self.engine.on_main(lambda: self._write_bundle(weights, step, figures))
        self.engine.load_weights(self.model, live)

    def _write_bundle(self, weights: Mapping[str, Tensor], step: int, figures: Mapping[str, float]) -> None:
        self.parts.save_bundle(self.run_folder.bundle, weights, step, dict(figures))
        self.run_folder.send_folder("bundle", "bundle.json")

    def _weights_to_keep(self) -> AbstractContextManager[None]:
        """The averaged weights in place of the live ones, where an average is kept."""
        return self.ema.in_place() if self.ema else nullcontext()
