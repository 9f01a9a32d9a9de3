"""Batches of an epoch, made ahead of time, from any place on: restored without reading what came before."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from sonant.base.errors import ConfigError
from sonant.batches.report import EpochReport, Tally
from sonant.batches.workers import Workers


class Batch(Protocol):
    def tally(self) -> Tally: ...
    def pin_memory(self) -> Self: ...


B = TypeVar("B", bound=Batch)
B_co = TypeVar("B_co", bound=Batch, covariant=True)


class BatchSource(Protocol[B_co]):
    """Where batches come from: each is a function of its epoch and step, whoever asks and whenever."""

    def num_steps(self, epoch: int) -> int: ...
    def num_overlong(self, epoch: int) -> int: ...
    def load(self, epoch: int, step: int) -> B_co: ...
    def largest(self) -> list[int]:
        """The steps of the first epoch with the largest batch of every kind, for whoever asks whether they fit."""
        ...

    def conditions(self) -> Mapping[str, str]:
        """What the batches depend on, by a word for each: compared when a run is taken up again."""
        ...


@dataclass(frozen=True, kw_only=True)
class LoaderConfig:
    workers: int = 2  # threads; 0 reads where the batch is asked for
    prefetch: int = 4  # batches made ahead, by all workers together
    pin_memory: bool = False  # for a GPU
    patience_seconds: float = 600.0  # without a batch for so long, the storage is taken for dead

    def __post_init__(self) -> None:
        for name in ("workers", "prefetch"):
            if getattr(self, name) < 0:
                raise ConfigError(name, f"{getattr(self, name)} was found, 0 or more is required.", "Raise it.")
        if not self.patience_seconds > 0:
            raise ConfigError(
                "patience_seconds", f"{self.patience_seconds} was found, above 0 is required.", "Raise it."
            )


class Loader(Generic[B]):
    """Iterating gives what is left of the current epoch; `endless` goes from epoch to epoch.

    The place counts what the consumer has taken, not what workers have made ahead. An epoch ends, and its
    `report` stands, when more is asked for than it has.
    """

    def __init__(self, source: BatchSource[B], config: LoaderConfig = LoaderConfig()) -> None:
        self.source, self.config = source, config
        self.epoch, self.step = 0, 0
        self.report: EpochReport | None = None  # of the epoch that ended last
        self._tally = Tally()
        self._clock = _Clock()
        self._workers: Workers[tuple[B, float]] | None = None

    def __iter__(self) -> Iterator[B]:
        yield from self._batches(last_epoch=self.epoch)

    def endless(self, on_epoch: Callable[[EpochReport], None] = lambda report: None) -> Generator[B, None, None]:
        """Every batch from here on; the first ones of an epoch are made while the one before ends."""
        yield from self._batches(last_epoch=None, on_epoch=on_epoch)

    def state(self) -> dict[str, Any]:
        """The place, with the counts of the epoch so far and what they depend on; plain values."""
        place = {"epoch": self.epoch, "step": self.step}
        return {**place, "tally": asdict(self._tally), "conditions": dict(self.source.conditions())}

    def restore(self, state: Mapping[str, Any]) -> list[str]:
        """Goes to a place at once; gives a sentence for each condition that makes what follows differ."""
        self.epoch, self.step = int(state["epoch"]), int(state["step"])
        self._tally, self._clock = Tally(**state["tally"]), _Clock()
        before, now = state["conditions"], self.source.conditions()
        changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        return [f"{name}: {before.get(name)} before, {now.get(name)} now" for name in changed]

    def close(self) -> None:
        """Ends the workers; iterating once more starts new ones."""
        if self._workers:
            self._workers.close()
            self._workers = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _batches(
        self, last_epoch: int | None, on_epoch: Callable[[EpochReport], None] = lambda report: None
    ) -> Iterator[B]:
        self._workers = self._workers or Workers(self.config.workers)
        tasks = (partial(self._load, epoch, step) for epoch, step in self._places(last_epoch))
        made = self._workers.in_order(tasks, self.config.prefetch, self.config.patience_seconds)
        while last_epoch is None or self.epoch <= last_epoch:
            for _ in range(self.step, self.source.num_steps(self.epoch)):
                self._clock.wait_begins()
                batch, busy_seconds = next(made)
                self._count(batch, busy_seconds)
                self._clock.wait_ends()
                yield batch
            on_epoch(self._finished())

    def _places(self, last_epoch: int | None) -> Iterator[tuple[int, int]]:
        """Every epoch and step from here on: what workers are given to do."""
        epoch, first = self.epoch, self.step
        while last_epoch is None or epoch <= last_epoch:
            yield from ((epoch, step) for step in range(first, self.source.num_steps(epoch)))
            epoch, first = epoch + 1, 0

    def _load(self, epoch: int, step: int) -> tuple[B, float]:
        started = time.perf_counter()
        batch = self.source.load(epoch, step)
        if self.config.pin_memory:
            batch = batch.pin_memory()
        return batch, time.perf_counter() - started

    def _count(self, batch: B, busy_seconds: float) -> None:
        tally = batch.tally()
        self.step += 1
        self._tally += tally
        self._clock.read(tally.seconds, busy_seconds)

    def _finished(self) -> EpochReport:
        self._clock.stops()
        self.report = self._clock.report(self.epoch, self._tally, self.source.num_overlong(self.epoch))
        self.epoch, self.step = self.epoch + 1, 0
        self._tally, self._clock = Tally(), _Clock()
        return self.report


class _Clock:
    """How long the consumer waited, of how long, and how fast workers read meanwhile."""

    def __init__(self) -> None:
        self.started: float | None = None
        self.waiting_since = self.wait_seconds = self.total_seconds = self.read_seconds = self.busy_seconds = 0.0

    def wait_begins(self) -> None:
        self.waiting_since = time.perf_counter()
        self.started = self.started or self.waiting_since

    def wait_ends(self) -> None:
        self.wait_seconds += time.perf_counter() - self.waiting_since

    def read(self, seconds: float, busy_seconds: float) -> None:
        self.read_seconds += seconds
        self.busy_seconds += busy_seconds

    def stops(self) -> None:
        if self.started:
            self.total_seconds = time.perf_counter() - self.started

    def report(self, epoch: int, tally: Tally, num_overlong: int) -> EpochReport:
        return EpochReport(
            epoch=epoch,
            tally=tally,
            num_overlong=num_overlong,
            wait_seconds=self.wait_seconds,
            total_seconds=self.total_seconds,
            read_seconds=self.read_seconds,
            busy_seconds=self.busy_seconds,
        )
