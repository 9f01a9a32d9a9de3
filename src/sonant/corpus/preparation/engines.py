"""Where work is done: in this process, on all its cores, or on a Ray cluster. Answers do not depend on it.

with open_engine("local", workers=0) as engine:
    answer = engine.submit(measure_all, tasks, on_crash)   # work on a list of tasks, answers in their order
    answer()                                                # waits
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from sonant.base.errors import DependencyError, UsageError

T = TypeVar("T")
R = TypeVar("R")
P = TypeVar("P")
_BATCHES_AHEAD = 3  # for each worker
_ALONE_SECONDS = 0.03  # what is done sooner needs no processes
_WATCH_SECONDS = 0.5


class Engine(Protocol):
    """Runs a function of a list of tasks; `on_crash` gives the answer for one that takes its process down."""

    num_workers: int

    def submit(
        self, work: Callable[[Sequence[T]], list[R]], tasks: Sequence[T], on_crash: Callable[[T], R]
    ) -> Callable[[], list[R]]: ...


@contextmanager
def open_engine(name: str, workers: int) -> Iterator[Engine]:
    if name == "ray":
        yield _RayEngine(workers)
        return
    engine = _LocalEngine(workers or len(os.sched_getaffinity(0)))
    try:
        yield engine
    finally:
        engine.close()


def in_order(
    engine: Engine,
    work: Callable[[Sequence[T]], list[R]],
    batches: Iterable[tuple[P, Sequence[T]]],
    on_crash: Callable[[T], R],
) -> Iterator[tuple[P, list[R]]]:
    """What each batch is about, with the answers to its tasks; a few batches are always ahead, never all of them."""
    waiting: deque[tuple[P, Callable[[], list[R]]]] = deque()
    for about, tasks in batches:
        waiting.append((about, engine.submit(work, tasks, on_crash) if tasks else list))
        if len(waiting) > _BATCHES_AHEAD * engine.num_workers:
            done, answer = waiting.popleft()
            yield done, answer()
    for done, answer in waiting:
        yield done, answer()


class _LocalEngine:
    """Begins in this process and forks workers only when there is more to do."""

    def __init__(self, num_workers: int) -> None:
        self.num_workers = num_workers
        self._pool: ProcessPoolExecutor | None = None
        self._seconds = 0.0

    def submit(
        self, work: Callable[[Sequence[T]], list[R]], tasks: Sequence[T], on_crash: Callable[[T], R]
    ) -> Callable[[], list[R]]:
        if self._pool is None:
            if self.num_workers == 1 or self._seconds < _ALONE_SECONDS:
                started = time.monotonic()
                with _interrupts_wait():
                    done = work(tasks)
                self._seconds += time.monotonic() - started
                return lambda: done
            self._pool = _fork_pool(self.num_workers)
        pool = self._pool
        try:
            future = pool.submit(work, tasks)
        except BrokenProcessPool:
            return lambda: self._one_by_one(pool, work, tasks, on_crash)

        def answer() -> list[R]:
            try:
                return future.result()
            except BrokenProcessPool:
                return self._one_by_one(pool, work, tasks, on_crash)

        return answer

    def _one_by_one(
        self,
        broken: ProcessPoolExecutor,
        work: Callable[[Sequence[T]], list[R]],
        tasks: Sequence[T],
        on_crash: Callable[[T], R],
    ) -> list[R]:
        """A worker died, and took the others along: finds out over which task."""
        if broken is self._pool:  # else a fresh one is at work already
            self.close()
        answers: list[R] = []
        for task in tasks:
            with _fork_pool(1) as pool:
                try:
                    answers += pool.submit(work, [task]).result()
                except BrokenProcessPool:
                    answers.append(on_crash(task))
        return answers

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Decoders call back into Python, and drop an interrupt that comes there: it waits for them, a second does not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told: list[int] = []

    def note(number: int, _: object) -> None:
        told.append(number)
        if len(told) > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if told:
        raise KeyboardInterrupt


def _fork_pool(num_workers: int) -> ProcessPoolExecutor:
    """Forked, because a fresh interpreter takes longer to start than a small corpus to prepare."""
    context = multiprocessing.get_context("fork")
    return ProcessPoolExecutor(num_workers, context, initializer=_begin_worker, initargs=(os.getpid(),))


def _begin_worker(parent: int) -> None:
    """Workers leave interrupts to their parent, and never outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)


def connect(workers: int) -> Any:
    """Ray, joined to the cluster that RAY_ADDRESS names, else to one on this machine with so many processors."""
    try:
        import ray
    except ImportError as error:
        raise DependencyError.for_extra("ray", "ray", "--engine ray") from error
    if not ray.is_initialized():
        quietly = {"log_to_driver": False, "include_dashboard": False}
        try:
            try:
                ray.init(num_cpus=workers or None, **quietly)
            except ValueError:  # a cluster that is there has its own processors
                ray.init(**quietly)
        except ConnectionError as error:
            place = os.environ.get("RAY_ADDRESS", "the cluster of this machine")
            problem = f"no Ray cluster answers there: {str(error).splitlines()[0]}"
            raise UsageError(place, problem, "Correct RAY_ADDRESS, or unset it to work on this machine.") from error
    return ray


class _RayEngine:
    """Tasks of a Ray cluster."""

    def __init__(self, workers: int) -> None:
        self.ray = connect(workers)
        self.num_workers = workers or int(self.ray.cluster_resources().get("CPU", 1))

    def submit(
        self, work: Callable[[Sequence[T]], list[R]], tasks: Sequence[T], on_crash: Callable[[T], R]
    ) -> Callable[[], list[R]]:
        remote = self.ray.remote(work)
        reference = remote.remote(tasks)

        def alone(task: T) -> R:
            try:
                found: list[R] = self.ray.get(remote.options(max_retries=0).remote([task]))
                return found[0]
            except self.ray.exceptions.WorkerCrashedError:
                return on_crash(task)

        def answer() -> list[R]:
            try:
                found: list[R] = self.ray.get(reference)
                return found
            except self.ray.exceptions.WorkerCrashedError:
                return [alone(task) for task in tasks]

        return answer
