"""What one pass over a recording tells: the facts that every rule about audio is judged by.

A recording is decoded once, block by block, however many utterances lie in it; memory does not grow with its length.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sonant.audio.address import Address
from sonant.audio.recording import open_recording
from sonant.base import storage
from sonant.base.errors import AudioError, SonantError

VERSION = 1  # of this measurement; another one makes every recording be measured again
BLOCK_SAMPLES = 1 << 19
FULL_SCALE = 0.9995  # a 16-bit sample at its limit


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch asked of a recording."""

    start: float
    seconds: float | None
    channel: int | None


@dataclass(frozen=True, kw_only=True)
class SpanFacts:
    """What was heard in one stretch; all zero where the stretch lies beyond the recording."""

    num_samples: int
    peak: float
    level: float  # dB below full scale, root mean square; -inf for digital silence
    clipped_share: float
    num_not_finite: int
    content: str  # hash of the samples


@dataclass(frozen=True, kw_only=True)
class RecordingFacts:
    """What was found in a recording, or the reason why it could not be read."""

    sample_rate: int = 0
    num_channels: int = 0
    num_samples: int = 0  # decoded
    num_promised: int = 0  # by the header; more than decoded: the file is cut short
    spans: tuple[SpanFacts, ...] = ()
    rule: str = ""  # of the fault that ended the reading, if one did
    problem: str = ""
    action: str = ""


def mark_of(audio: str) -> str:
    """Changes when the file behind an address does; asked before and after it is read."""
    size, changed = storage.fingerprint(Address.parse(audio).location)
    return f"{VERSION}/{size}/{changed}"


def measure(audio: str, spans: Sequence[Span], sample_rate: int | None) -> tuple[str, RecordingFacts]:
    """The mark of the file and the facts of its stretches; a fault of the file is a fact too."""
    try:
        before = mark_of(audio)
        facts = _decode(audio, spans, sample_rate)
        if mark_of(audio) != before:
            problem = "the file was changed while it was read."
            return before, RecordingFacts(rule="recording-changed", problem=problem, action="Prepare again when it is whole.")
        return before, facts
    except AudioError as error:
        return "", RecordingFacts(rule="unreadable-audio", problem=error.problem, action=error.action)
    except SonantError as error:  # a file that is gone, a bucket that does not answer
        return "", RecordingFacts(rule="missing-audio", problem=error.problem, action=error.action)


def _decode(audio: str, spans: Sequence[Span], sample_rate: int | None) -> RecordingFacts:
    with open_recording(audio, sample_rate=sample_rate) as recording:
        info = recording.info
        listeners = [_Listener(span, info.sample_rate, info.num_channels) for span in spans]
        position = 0
        for block in recording.blocks(BLOCK_SAMPLES):
            for listener in listeners:
                listener.hear(block, position)
            position += len(block)
    return RecordingFacts(
        sample_rate=info.sample_rate,
        num_channels=info.num_channels,
        num_samples=position,
        num_promised=max(info.num_samples, position),
        spans=tuple(listener.facts() for listener in listeners),
    )


class _Listener:
    """Sums up one stretch of a recording that passes by in blocks."""

    def __init__(self, span: Span, sample_rate: int, num_channels: int) -> None:
        self.first = math.floor(span.start * sample_rate + 0.5)
        self.last = math.inf if span.seconds is None else self.first + math.floor(span.seconds * sample_rate + 0.5)
        self.channel = span.channel if span.channel is not None and span.channel < num_channels else None
        self.hash = hashlib.blake2b(digest_size=16)
        self.num_samples = self.num_clipped = self.num_not_finite = 0
        self.peak = self.energy = 0.0

    def hear(self, block: np.ndarray, position: int) -> None:
        """Takes what belongs to the stretch from a block (N, channels) that starts at `position`."""
        first = max(self.first - position, 0)
        last = int(min(self.last - position, len(block)))
        if first >= last:
            return
        part = block[first:last]
        samples = part[:, 0] if part.shape[1] == 1 else self._one_channel(part)
        samples = np.ascontiguousarray(samples, dtype=np.float32)
        self.hash.update(samples.data)
        self.num_samples += len(samples)
        self._add(samples)

    def _one_channel(self, part: np.ndarray) -> np.ndarray:
        mixed: np.ndarray = part.mean(axis=1) if self.channel is None else part[:, self.channel]
        return mixed

    def _add(self, samples: np.ndarray) -> None:
        energy = float(np.dot(samples, samples))
        if not math.isfinite(energy):  # an unheard-of level, or samples that are no numbers
            is_finite = np.isfinite(samples)
            self.num_not_finite += int(len(samples) - is_finite.sum())
            samples = samples[is_finite].astype(np.float64)
            energy = float(np.dot(samples, samples))
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
            level=10 * math.log10(mean) if mean > 0 else -math.inf,
            clipped_share=self.num_clipped / self.num_samples if self.num_samples else 0.0,
            num_not_finite=self.num_not_finite,
            content=self.hash.hexdigest() if self.num_samples else "",
        )


@dataclass(frozen=True, kw_only=True)
class Task:
    """A recording to measure, unless its file still bears the mark of an earlier measurement."""

    audio: str
    spans: tuple[Span, ...]
    sample_rate: int | None = None
    known_mark: str = ""


def measure_all(tasks: Iterable[Task]) -> list[tuple[str, RecordingFacts | None]]:
    """What a worker does with its share; None says that what is known still holds."""
    return [_measure_unless_known(task) for task in tasks]


def _measure_unless_known(task: Task) -> tuple[str, RecordingFacts | None]:
    if task.known_mark:
        try:
            if mark_of(task.audio) == task.known_mark:
                return task.known_mark, None
        except SonantError:
            pass  # gone since: measuring says so
    return measure(task.audio, task.spans, task.sample_rate)
