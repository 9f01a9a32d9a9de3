"""A recogniser's ears: recordings of any length and number become scores, passage by passage, in bounded memory.

for group in listener.hear(sounds):            # recordings in order; the last of a group may go on in the next
    for one in group:
        one.passages                           # what was scored since the last group
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from sonant.audio.listening import waveform_blocks
from sonant.base.errors import SonantError
from sonant.base.lengths import Lengths
from sonant.decoding.passages import Passage, PassageCutter
from sonant.decoding.seams import Stitcher
from sonant.decoding.spelling import Spelling
from sonant.inference.pieces import Cut, Piece

_BATCHES_AHEAD = 4
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


@dataclass(eq=False)
class Listening:
    """A recording that is being heard."""

    audio: str
    stitcher: Stitcher
    cutter: PassageCutter
    seconds: float = 0.0
    is_read: bool = False
    error: SonantError | None = None
    passages: list[Passage] = field(default_factory=list)
    segment: int = -1

    def take(self, piece: Piece, scores: np.ndarray) -> None:
        """The scores (T, V) of the next piece."""
        if piece.segment != self.segment:
            self.cutter.begin(piece.segment)
            self.segment = piece.segment
        self.passages += self.cutter.push(self.stitcher.push(piece.start, scores))
        if piece.is_last:
            rest = self.stitcher.finish()
            self.passages += self.cutter.push(rest) if rest is not None else []
            self.passages += self.cutter.finish()


@dataclass(frozen=True)
class Listener:
    model: Any
    spelling: Spelling
    cut: Cut
    batch_seconds: float
    precision: str = "fp32"
    device: str = "cpu"

    def hear(self, sounds: Iterable[Sound], on_heard: OnHeard = lambda seconds: None) -> Iterator[list[Listening]]:
        """Reads ahead as much as fills a few batches, of many recordings or of a part of one."""
        waiting: list[Listening] = []
        pieces: list[tuple[Listening, Piece]] = []
        num_samples, most = 0, _BATCHES_AHEAD * self.batch_seconds * self.model.sample_rate
        for one, piece in self._pieces(sounds, waiting):
            pieces.append((one, piece))
            num_samples += len(piece.samples)
            if num_samples >= most:
                self._take(pieces, on_heard)
                yield waiting
                waiting[:] = [unread for unread in waiting if not unread.is_read]
                for unread in waiting:
                    unread.passages = []
                pieces, num_samples = [], 0
        self._take(pieces, on_heard)
        yield waiting

    def _pieces(self, sounds: Iterable[Sound], waiting: list[Listening]) -> Iterator[tuple[Listening, Piece]]:
        """Those of all recordings; one that cannot be read to its end is a failure, and the next goes on."""
        for sound in sounds:
            stitcher = Stitcher(self.cut.context, self.spelling.blank_id)
            one = Listening(sound.audio, stitcher, PassageCutter(self.spelling, self.cut.window))
            waiting.append(one)
            try:
                for piece in self.cut(self._counted(one, sound.blocks)):
                    yield one, piece
            except SonantError as error:
                one.error = error
            one.is_read = True

    def _counted(self, one: Listening, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        num_samples = 0
        for block in blocks:
            num_samples += len(block)
            one.seconds = num_samples / self.model.sample_rate
            yield block

    def _take(self, pieces: Sequence[tuple[Listening, Piece]], on_heard: OnHeard) -> None:
        """Scores pieces as it suits the model, and hands them out in order."""
        scores: dict[int, np.ndarray] = {}
        for places in self._batches([piece.samples for _, piece in pieces]):
            found = self._score([pieces[place][1].samples for place in places])
            scores.update(zip(places, found, strict=True))
            on_heard(sum(pieces[place][1].num_new for place in places) / self.model.sample_rate)
        for place, (one, piece) in enumerate(pieces):
            one.take(piece, scores[place])

    def _batches(self, recordings: Sequence[np.ndarray]) -> Iterator[list[int]]:
        """The longest first; those that are much shorter go into another batch."""
        most = self.batch_seconds * self.model.sample_rate
        batch: list[int] = []
        for place in sorted(range(len(recordings)), key=lambda place: -len(recordings[place])):
            longest = len(recordings[batch[0]]) if batch else 0
            if batch and ((len(batch) + 1) * longest > most or 2 * len(recordings[place]) < longest):
                yield batch
                batch = []
            batch.append(place)
        if batch:
            yield batch

    @torch.no_grad()
    def _score(self, recordings: Sequence[np.ndarray]) -> list[np.ndarray]:
        """(T, V) of each."""
        counts = [len(samples) for samples in recordings]
        if not self.model.num_frames(max(counts)):
            return [np.zeros((0, self.spelling.tokenizer.size), np.float32) for _ in counts]
        padded = np.zeros((len(counts), max(counts)), np.float32)
        for row, samples in zip(padded, recordings, strict=True):
            row[: len(samples)] = samples
        lengths = Lengths(torch.tensor(counts, device=self.device))
        with nullcontext() if self.precision == "fp32" else torch.autocast(self._kind, torch.bfloat16):
            scores = self.model(torch.from_numpy(padded).to(self.device), lengths)
        log_probs, frames = scores.log_probs.cpu().numpy(), scores.lengths.values.tolist()
        return [one[:num_frames] for one, num_frames in zip(log_probs, frames, strict=True)]

    @property
    def _kind(self) -> str:
        return self.device.partition(":")[0]
