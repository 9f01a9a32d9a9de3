"""Everything that a training says: to its log, to the terminal, to trackers. Only the first rank speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sonant.batches.report import EpochReport
from sonant.checkpoints.metrics_log import MetricsLog
from sonant.objectives.loss import Watch
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.guards import told_ids
from sonant.training.pace import Pace
from sonant.training.trackers import Tracker


class Journal:
    """One sentence or line for each thing that happens; `log` is the file that a state remembers its place in."""

    def __init__(self, engine: Engine, log: MetricsLog, console: Console, trackers: Sequence[Tracker]) -> None:
        self.engine, self.log, self.console, self.trackers = engine, log, console, trackers
        self.pace = Pace()

    def stretch(self, step: int, total: int | None, figures: Mapping[str, float]) -> int:
        """A stretch of training with its mean figures; gives how many steps it was."""
        steps, clock = self.pace.lap(step, total)
        self._write("train", step, figures, clock)
        self.console.line(step, total, figures, clock)
        return steps

    def validated(self, kind: str, step: int, total: int | None, figures: Mapping[str, float]) -> None:
        self._write(kind, step, figures, {"seconds": self.pace.last_pause}, prefix=f"{kind}/")
        self.console.line(step, total, {f"{kind} {name}": value for name, value in figures.items()}, {})

    def epoch(self, step: int, report: EpochReport) -> None:
        """Called on all ranks, at the same step: their reports are added up."""
        reports = self.engine.gather(report)
        total = sum(reports[1:], reports[0])
        tally = {name: getattr(total.tally, name) for name in total.tally.__dataclass_fields__}
        clock = {"wait_share": total.wait_share, "loading_speed": total.loading_speed}
        self._write("epoch", step, {"epoch": total.epoch, **tally}, clock)
        self.console.say(str(total))

    def skipped(self, step: int, ids: Sequence[str]) -> None:
        self._write("skipped", step, {"ids": list(ids)}, {})
        self.console.say(f"step {step:,}: gradients were not finite, so the step was skipped ({told_ids(ids)})")

    def alarm(self, step: int, watch: Watch, value: float | None) -> None:
        self._write("alarm", step, {"figure": watch.figure, "says": watch.says, "action": watch.action}, {})
        found = "" if value is None else f" {value:.4g}"
        self.console.say(f"step {step:,}: {watch.figure}{found}: {watch.says} {watch.action}")

    def rolled_back(self, step: int, scale: float, because: str) -> None:
        self._write("rollback", step, {"rate_scale": scale, "because": because}, {})
        self.console.say(f"rolled back to step {step:,}, rate times {scale:g}, because {because}")

    def close(self) -> None:
        for tracker in self.trackers:
            tracker.close()

    def _write(
        self, kind: str, step: int, figures: Mapping[str, Any], clock: Mapping[str, float], prefix: str = ""
    ) -> None:
        if not self.engine.is_main:
            return
        self.log.write(kind, step, figures, clock)
        if kind in ("train", "validation", "average"):
            for tracker in self.trackers:
                tracker.write(step, {f"{prefix}{name}": value for name, value in figures.items()})
