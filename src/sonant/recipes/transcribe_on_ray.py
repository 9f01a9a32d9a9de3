"""Transcribing on a Ray cluster: each worker has the recogniser to itself; answers come in order, and are the same.

for found in OnRay(opening, workers=4).transcribe_all(requests): ...
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sonant.base.errors import AudioError, SonantError, UsageError
from sonant.corpus.preparation.engines import connect
from sonant.inference.listener import OnHeard, Request
from sonant.inference.transcriber import Failure, Transcriber
from sonant.inference.transcripts import Transcript
from sonant.inference.writing_transcriber import WritingTranscriber
from sonant.recipes.opening import AnyOpening

_TOGETHER = 16  # recordings that a worker is given at once
_AHEAD = 2  # times that, for each worker

Result = Transcript | Failure


class Worker:
    """Opens the recogniser when it is first asked; what is wrong with that is its answer."""

    def __init__(self, opening: AnyOpening, num_threads: int) -> None:
        os.environ["OMP_NUM_THREADS"] = str(num_threads)
        self.opening, self.num_threads = opening, num_threads
        self.transcriber: Transcriber | WritingTranscriber | None = None

    def transcribe(self, requests: Sequence[Request]) -> list[Result] | SonantError:
        import torch

        torch.set_num_threads(self.num_threads)
        try:
            self.transcriber = self.transcriber or self.opening.open()
            return list(self.transcriber.transcribe_all(requests))
        except SonantError as error:
            return error


class OnRay:
    """`workers` 0: as many as the cluster has processors, or accelerators where these are asked for; never more."""

    def __init__(self, opening: AnyOpening, workers: int = 0) -> None:
        self.ray = connect(workers)
        kind = "GPU" if opening.device.startswith("cuda") else "CPU"
        self.opening, self.options = opening, {f"num_{kind.lower()}s": 1}
        there = int(self.ray.cluster_resources().get(kind, 0))
        if not there:
            problem = f"'{opening.device}' was asked for, but no machine of the Ray cluster has one."
            raise UsageError("--device", problem, "Leave it out to use the processors.")
        self.num_workers = min(workers or there, there)  # one more would wait for ever

    def transcribe_all(self, requests: Iterable[Request], on_heard: OnHeard = lambda seconds: None) -> Iterator[Result]:
        """Like a transcriber of this process."""
        todo, running = iter(requests), deque[tuple[int, list[Request], Any]]()
        workers = [self._worker() for _ in range(self.num_workers)]
        number = 0
        while running or number == 0:
            while len(running) < _AHEAD * len(workers) and (part := list(islice(todo, _TOGETHER))):
                place = number % len(workers)
                running.append((place, part, workers[place].transcribe.remote(part)))
                number += 1
            if not running:
                return
            place, part, answer = running.popleft()
            for found in self._answers(answer, part, workers, place):
                on_heard(found.seconds if isinstance(found, Transcript) else 0.0)
                yield found

    def _worker(self) -> Any:
        return self.ray.remote(Worker).options(**self.options).remote(self.opening, 1)

    def _answers(self, answer: Any, part: Sequence[Request], workers: list[Any], place: int) -> list[Result]:
        """A worker that died is replaced, and finds out one by one over which recording it did."""
        try:
            found = self.ray.get(answer)
        except self.ray.exceptions.RayActorError:
            workers[place] = self._worker()
            return [self._alone(request, workers, place) for request in part]
        if isinstance(found, SonantError):
            raise found
        return list(found)

    def _alone(self, request: Request, workers: list[Any], place: int) -> Result:
        try:
            found = self.ray.get(workers[place].transcribe.remote([request]))
        except self.ray.exceptions.RayActorError:
            workers[place] = self._worker()
            problem = "hearing it brought the worker down: its memory was used up, or its decoder crashed."
            return Failure(request.audio, AudioError(request.audio, problem, "Convert it, or hear it by itself."))
        if isinstance(found, SonantError):
            raise found
        answer: Result = found[0]
        return answer
