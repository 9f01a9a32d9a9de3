"""A recogniser's ears: recordings of any length and number are heard piece by piece, in bounded memory.

for group in listener.hear(sounds):            # recordings in order; the last of a group may go on in the next
    for one in group:
        one                                    # knows what was made of it since the last group
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from sonant.audio.listening import waveform_blocks
from sonant.audio.resample import resample
from sonant.base.errors import SonantError, UsageError
from sonant.base.lengths import Lengths
from sonant.inference.pieces import Piece

_BATCHES_AHEAD = 4
_MOST_WAITING = 256  # recordings: many in a row may have nothing to be heard
OnHeard = Callable[[float], None]  # told of the seconds that were just scored


@dataclass(frozen=True)
class Request:
    """A recording, or a stretch of one."""

    audio: str
    start: float = 0.0
    seconds: float | None = None
    channel: int | None = None
    native_rate: int | None = None  # of bare arrays of numbers in datasets


@dataclass(frozen=True, eq=False)
class Sound:
    """A recording and the blocks (N,) of its samples at the model's rate."""

    audio: str
    blocks: Iterable[np.ndarray]

    @classmethod
    def of(cls, request: Request, sample_rate: int) -> Sound:
        blocks = waveform_blocks(
            request.audio,
            start=request.start,
            seconds=request.seconds,
            channel=request.channel,
            sample_rate=sample_rate,
            native_rate=request.native_rate,
        )
        return cls(request.audio, blocks)

    @classmethod
    def given(cls, audio: str | np.ndarray, given_rate: int | None, sample_rate: int) -> Sound:
        """A recording's place, or its samples (N,) in [-1, 1] at a rate."""
        if isinstance(audio, str):
            return cls.of(Request(audio), sample_rate)
        if given_rate is None:
            raise UsageError("samples", "they come without their rate.", "Give sample_rate.")
        samples = np.ascontiguousarray(audio, np.float32)
        if samples.ndim != 1:
            problem = f"samples of the shape {samples.shape} were given, (N,) is required."
            raise UsageError("samples", problem, "Give one channel, or the mean of all.")
        return cls("", [resample(samples, given_rate, sample_rate)])


class Listening(Protocol):
    """A recording that is being heard, and what was made of it."""

    audio: str
    seconds: float
    is_read: bool
    error: SonantError | None

    def take(self, piece: Piece, found: Any) -> None:
        """What was made of the next piece."""
        ...

    def forget(self) -> None:
        """What was handed out."""
        ...


Heard = TypeVar("Heard", bound=Listening)


@dataclass(frozen=True)
class Listener(Generic[Heard]):
    """`begin` takes the name of a recording; `make` makes something of pieces (N,), side by side."""

    cut: Callable[[Iterable[np.ndarray]], Iterator[Piece]]
    begin: Callable[[str], Heard]
    make: Callable[[Sequence[np.ndarray]], Sequence[Any]]
    sample_rate: int
    batch_seconds: float

    def hear(self, sounds: Iterable[Sound], on_heard: OnHeard = lambda seconds: None) -> Iterator[list[Heard]]:
        """Reads ahead as much as fills a few batches, of many recordings or of a part of one."""
        waiting: list[Heard] = []
        pieces: list[tuple[Heard, Piece]] = []
        num_samples, most = 0, _BATCHES_AHEAD * self.batch_seconds * self.sample_rate
        for one, piece in self._pieces(sounds, waiting):
            if piece is not None:
                pieces.append((one, piece))
                num_samples += len(piece.samples)
            if num_samples >= most or len(waiting) >= _MOST_WAITING:
                self._take(pieces, on_heard)
                yield waiting
                waiting[:] = [unread for unread in waiting if not unread.is_read]
                for unread in waiting:
                    unread.forget()
                pieces, num_samples = [], 0
        self._take(pieces, on_heard)
        yield waiting

    def _pieces(self, sounds: Iterable[Sound], waiting: list[Heard]) -> Iterator[tuple[Heard, Piece | None]]:
        """Those of all recordings, and None behind the last of each; one that cannot be read to its end is a failure,
        and the next goes on."""
        for sound in sounds:
            one = self.begin(sound.audio)
            waiting.append(one)
            try:
                for piece in self.cut(self._counted(one, sound.blocks)):
                    yield one, piece
            except SonantError as error:
                one.error = error
            one.is_read = True
            yield one, None

    def _counted(self, one: Heard, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        num_samples = 0
        for block in blocks:
            num_samples += len(block)
            one.seconds = num_samples / self.sample_rate
            yield block

    def _take(self, pieces: Sequence[tuple[Heard, Piece]], on_heard: OnHeard) -> None:
        """Makes what is wanted of pieces as it suits the model, and hands it out in order."""
        made: dict[int, Any] = {}
        for places in self._batches([piece.samples for _, piece in pieces]):
            found = self.make([pieces[place][1].samples for place in places])
            made.update(zip(places, found, strict=True))
            on_heard(sum(pieces[place][1].num_new for place in places) / self.sample_rate)
        for place, (one, piece) in enumerate(pieces):
            one.take(piece, made[place])

    def _batches(self, recordings: Sequence[np.ndarray]) -> Iterator[list[int]]:
        """The longest first; those that are much shorter go into another batch."""
        most = self.batch_seconds * self.sample_rate
        batch: list[int] = []
        for place in sorted(range(len(recordings)), key=lambda place: -len(recordings[place])):
            longest = len(recordings[batch[0]]) if batch else 0
            if batch and ((len(batch) + 1) * longest > most or 2 * len(recordings[place]) < longest):
                yield batch
                batch = []
            batch.append(place)
        if batch:
            yield batch


def side_by_side(recordings: Sequence[np.ndarray], device: str) -> tuple[Tensor, Lengths]:
    """Recordings (N,) as one tensor (B, N)."""
    counts = [len(samples) for samples in recordings]
    padded = np.zeros((len(counts), max(counts)), np.float32)
    for row, samples in zip(padded, recordings, strict=True):
        row[: len(samples)] = samples
    return torch.from_numpy(padded).to(device), Lengths(torch.tensor(counts, device=device))
