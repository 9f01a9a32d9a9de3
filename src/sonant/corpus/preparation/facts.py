"""What one pass over a recording tells: the facts that every rule about audio is judged by.

A recording is decoded once, block by block, however many utterances lie in it; memory does not grow with its length.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sonant.audio.address import Address
from sonant.audio.recording import open_recording
from sonant.base import storage
from sonant.base.errors import AudioError, DependencyError, SonantError
from sonant.base.randomness import stable_hash

VERSION = 2  # of this measurement; another one makes every recording be measured again
BLOCK_SAMPLES = 1 << 17  # of all channels of a mono recording: half a megabyte stays in the cache
FULL_SCALE = 0.9995  # a 16-bit sample at its limit


class Span(NamedTuple):
    """A stretch asked of a recording."""

    start: float
    seconds: float | None
    channel: int | None


class SpanFacts(NamedTuple):
    """What was heard in one stretch; all zero where the stretch lies beyond the recording."""

    num_samples: int
    peak: float
    level: float | None  # dB below full scale, root mean square; None for digital silence
    clipped_share: float
    num_not_finite: int
    content: str  # hash of the samples


class RecordingFacts(NamedTuple):
    """What was found in a recording, or the reason why it could not be read."""

    sample_rate: int = 0
    num_channels: int = 0
    num_samples: int = 0  # decoded
    num_promised: int = 0  # by the header; more than decoded: the file is cut short
    spans: tuple[SpanFacts, ...] = ()
    rule: str = ""  # of the fault that ended the reading, if one did
    problem: str = ""
    action: str = ""

    def to_json(self) -> str:
        return json.dumps(self)

    @classmethod
    def from_json(cls, text: str) -> RecordingFacts:
        facts = cls(*json.loads(text))
        return facts._replace(spans=tuple(SpanFacts(*span) for span in facts.spans))


class Task(NamedTuple):
    """A recording to measure, unless its file still bears the mark of an earlier measurement."""

    audio: str
    spans: tuple[Span, ...]
    sample_rate: int | None = None  # of bare arrays of floats
    known_mark: str = ""

    @property
    def key(self) -> str:
        """Names a recording and the stretches that are asked of it, from wherever it is prepared."""
        audio = self.audio if storage.is_remote(self.audio) else os.path.abspath(self.audio)
        return f"{stable_hash(audio, self.sample_rate, *self.spans):016x}"


def positions(span: Span, sample_rate: int) -> tuple[int, float]:
    """The first sample of a stretch, and the one behind its last: infinite where it goes to the end."""
    first = math.floor(span.start * sample_rate + 0.5)
    return first, math.inf if span.seconds is None else first + math.floor(span.seconds * sample_rate + 0.5)


def part_of(block: np.ndarray, channel: int | None) -> np.ndarray:
    """One channel of a block (N, channels), or the mean of all: (N,) float32."""
    if channel is not None or block.shape[1] == 1:
        block = block[:, channel or 0]
        return np.ascontiguousarray(block, dtype=np.float32)
    mixed: np.ndarray = block.mean(axis=1, dtype=np.float32)
    return mixed


def content_of(samples: np.ndarray) -> str:
    """What the same sound has in common: the hash of its samples (N,) float32."""
    return _written(hashlib.sha256(samples.data))


def _written(digest: hashlib._Hash) -> str:
    return digest.hexdigest()[:32]  # processors have instructions for SHA-256: twice as fast as BLAKE2 (LOG.md)


def mark_of(audio: str) -> str:
    """Changes when the file behind an address does; asked before and after it is read."""
    size, changed = storage.fingerprint(Address.parse(audio).location)
    return f"{VERSION}/{size}/{changed}"


def measure_all(tasks: Sequence[Task]) -> list[tuple[str, RecordingFacts | None]]:
    """What a worker does with its share: mark and facts of each; None says that what is known still holds."""
    return [_measure_unless_known(task) for task in tasks]


def _measure_unless_known(task: Task) -> tuple[str, RecordingFacts | None]:
    if task.known_mark:
        try:
            if mark_of(task.audio) == task.known_mark:
                return task.known_mark, None
        except SonantError:
            pass  # gone since: measuring says so
    return measure(task)


def measure(task: Task) -> tuple[str, RecordingFacts]:
    """The mark of the file and the facts of its stretches; a fault of the file is a fact too."""
    mark = ""
    try:
        mark = mark_of(task.audio)
        facts = _decode(task)
        if mark_of(task.audio) == mark:
            return mark, facts
        return "", RecordingFacts(
            rule="recording-unstable",
            problem="the file was changed while it was read.",
            action="Prepare again when nobody writes it any more.",
        )
    except (AudioError, DependencyError) as error:
        mark = mark if isinstance(error, AudioError) else ""  # what is not installed today may be tomorrow
        return mark, RecordingFacts(rule="unreadable-audio", problem=error.problem, action=error.action)
    except SonantError as error:  # a file that is gone, a bucket that does not answer
        return "", RecordingFacts(rule="missing-audio", problem=error.problem, action=error.action)


def _decode(task: Task) -> RecordingFacts:
    with open_recording(task.audio, sample_rate=task.sample_rate) as recording:
        info = recording.info
        listeners = [_Listener(span, info.sample_rate, info.num_channels) for span in task.spans]
        position = _listen(listeners, recording.blocks(max(BLOCK_SAMPLES // max(info.num_channels, 1), 1)))
    return RecordingFacts(
        sample_rate=info.sample_rate,
        num_channels=info.num_channels,
        num_samples=position,
        num_promised=max(info.num_samples or 0, position),
        spans=tuple(listener.facts() for listener in listeners),
    )


def _listen(listeners: Iterable[_Listener], blocks: Iterable[np.ndarray]) -> int:
    """Lets the blocks pass by, each listener hearing those of its stretch; gives the number of samples."""
    waiting = sorted(listeners, key=lambda listener: listener.first, reverse=True)
    listening: list[_Listener] = []
    position = 0
    for block in blocks:
        end = position + len(block)
        while waiting and waiting[-1].first < end:
            listening.append(waiting.pop())
        for listener in listening:
            listener.hear(block, position)
        listening = [listener for listener in listening if listener.last > end]
        position = end
    return position


class _Listener:
    """Sums up one stretch of a recording that passes by in blocks."""

    def __init__(self, span: Span, sample_rate: int, num_channels: int) -> None:
        self.first, self.last = positions(span, sample_rate)
        self.channel = span.channel if span.channel is not None and span.channel < num_channels else None
        self.hash = hashlib.sha256()
        self.num_samples = self.num_clipped = self.num_not_finite = 0
        self.peak = self.energy = 0.0

    def hear(self, block: np.ndarray, position: int) -> None:
        """Takes what belongs to the stretch from a block (N, channels) that starts at `position`."""
        first = max(self.first - position, 0)
        last = int(min(self.last - position, len(block)))
        if first >= last:
            return
        samples = part_of(block[first:last], self.channel)
        self.hash.update(samples.data)
        self.num_samples += len(samples)
        self._add(samples)

    def _add(self, samples: np.ndarray) -> None:
        energy = float(np.square(samples).sum())  # not np.dot: its last bits depend on the number of threads
        if not math.isfinite(energy):  # an unheard-of level, or samples that are no numbers
            is_finite = np.isfinite(samples)
            self.num_not_finite += int(len(samples) - is_finite.sum())
            samples = samples[is_finite].astype(np.float64)
            energy = float(np.square(samples).sum())
        self.energy += energy
        peak = max(float(samples.max(initial=0.0)), -float(samples.min(initial=0.0)))
        self.peak = max(self.peak, peak)
        if peak >= FULL_SCALE:
            self.num_clipped += int((np.abs(samples) >= FULL_SCALE).sum())

    def facts(self) -> SpanFacts:
        mean = self.energy / self.num_samples if self.num_samples else 0.0
        return SpanFacts(
            num_samples=self.num_samples,
            peak=self.peak,
            level=round(10 * math.log10(mean), 2) if mean > 0 else None,
            clipped_share=self.num_clipped / self.num_samples if self.num_samples else 0.0,
            num_not_finite=self.num_not_finite,
            content=_written(self.hash) if self.num_samples else "",
        )
