"""Threads that make batches ahead of time, and hand them over in order.

Threads, not processes: reading and resampling release Python's lock, so nothing is copied or forked, an
error arrives as it was raised, and nothing is left behind. Measured by `bench/loading.py`.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from sonant.base.errors import StorageError

T = TypeVar("T")

_LAST_WORDS_SECONDS = 2.0  # for the batches that are being made when all is to end
_Task = tuple["Future[Any]", Callable[[], Any]]


class Workers(Generic[T]):
    """A fixed number of threads; none at all does the work where its result is asked for."""

    def __init__(self, count: int) -> None:
        self.queue: SimpleQueue[_Task | None] = SimpleQueue()
        self.threads = [
            # Daemons: an interrupted program ends at once, however much there is to do.
            threading.Thread(target=_work, args=(self.queue,), name=f"sonant-loader-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self.threads:
            thread.start()
        self._stop = weakref.finalize(self, _stop, self.queue, self.threads)

    def in_order(self, tasks: Iterable[Callable[[], T]], ahead: int, patience_seconds: float) -> Iterator[T]:
        """The results of the tasks, one after the other, with up to `ahead` more being made meanwhile."""
        if not self.threads:
            yield from (task() for task in tasks)
            return
        coming = iter(tasks)
        waiting: deque[Future[T]] = deque()
        try:
            while True:
                while len(waiting) <= ahead and (task := next(coming, None)) is not None:
                    waiting.append(self._submit(task))
                if not waiting:
                    return
                yield _result(waiting.popleft(), patience_seconds)
        finally:
            for future in waiting:
                future.cancel()

    def _submit(self, task: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self.queue.put((future, task))
        return future

    def close(self) -> None:
        """Ends the threads, each after what it is at."""
        self._stop()


def _work(queue: SimpleQueue[_Task | None]) -> None:
    while (task := queue.get()) is not None:
        future, function = task
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
        del task, future, function  # a waiting thread must not hold on to a batch


def _stop(queue: SimpleQueue[_Task | None], threads: list[threading.Thread]) -> None:
    with suppress(Empty):
        while True:
            if (task := queue.get_nowait()) is not None:
                task[0].cancel()
    for _ in threads:
        queue.put(None)
    until = time.monotonic() + _LAST_WORDS_SECONDS
    for thread in threads:
        if thread is not threading.current_thread():  # which may have dropped the last hold on the workers
            thread.join(timeout=max(until - time.monotonic(), 0))


def _result(future: Future[T], patience_seconds: float) -> T:
    try:
        return future.result(timeout=patience_seconds)
    except TimeoutError as error:
        if future.done():  # the task's own
            raise
        raise StorageError(
            "training data",
            f"no batch came for {patience_seconds:g} seconds.",
            "Look whether the storage answers; for slow storage raise patience_seconds.",
        ) from error
