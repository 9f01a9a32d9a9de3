"""M4A, MP4, WebM, Matroska, AAC, AMR and what else libsndfile cannot read, through PyAV (the extra `formats`).

A position is a number of decoded samples, never a time stamp: stamps are rounded to milliseconds in Matroska and
drift in what browsers and telephones record. Beyond the first 30 s, up to which everything is decoded from the start,
a seek counts the packets before it; coders whose packets differ in length are decoded from the start always.

How exact a seek is: ALAC, FLAC and MP3 to the bit, Opus to 1e-5, AMR to 0.001; AAC and AC-3 to the bit but for the
bands that their encoder left to the decoder's noise, which is drawn anew. In the first 30 s all are exact to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sonant.audio.decoders import ogg
from sonant.audio.decoders.decoder import NotReadableError, RecordingInfo
from sonant.audio.streams import Bytes, Stream
from sonant.base.errors import AudioError, DependencyError

_FROM_START_SECONDS = 30
_PREROLL_SECONDS = 1
_SKIPPED_SAMPLES = 1 << 16
_CUT_SECONDS = 0.5  # an end this much before the stated duration is a cut
_EVEN_CODERS = frozenset(("aac", "opus", "amrnb", "amrwb", "alac", "flac", "mp3float", "ac3", "eac3"))
_MISLEADING_CONTAINERS = ("ogg",)  # only the last packet of a page has a stamp
_STATED_DURATIONS = ("mov,", "matroska", "asf", "avi")  # of other containers the duration is a guess
_RECODE = "Convert it: ffmpeg -i FILE whole.flac"
_RECOPY = "Copy or record it again, or remove it."

_packet_stamps: dict[object, np.ndarray] = {}  # by mark, of recordings read in segments: 8 bytes for 20 ms of sound
_MOST_REMEMBERED = 64


class LibavDecoder:
    """The first audio track of one recording."""

    def __init__(self, content: Bytes, where: str, kind: str) -> None:
        self._content, self._where, self._kind = content, where, kind
        self._container: Any = None
        self._position, self._is_used = 0, False
        frames = self._open()
        self._num_first, self._num_each = frames[0].samples, frames[-1].samples  # samples of a packet
        self._first_stamp = frames[0].pts
        self.info = RecordingInfo(
            sample_rate=frames[0].sample_rate,
            num_channels=frames[0].layout.nb_channels,
            num_samples=self._stated_samples(frames[0].sample_rate),
            encoding=f"{kind}/{self._stream.codec_context.name}",
        )
        self._waiting = [self._to_samples(frame) for frame in frames]  # decoded and not yet read

    def start_at(self, first: int) -> None:
        self._restart()
        if first > _FROM_START_SECONDS * self.info.sample_rate and not self._seek(first):
            self._restart()
        while self._position < first and len(self.read(min(first - self._position, _SKIPPED_SAMPLES))):
            pass

    def _restart(self) -> None:
        """Begins anew: what is decoded must not depend on what was decoded before."""
        if self._is_used:
            self._position, self._is_used = 0, False
            self._waiting = [self._to_samples(frame) for frame in self._open()]

    def read(self, num_samples: int) -> np.ndarray:
        self._is_used = True
        if self.info.num_samples is not None:  # what follows is the filling of the last packet
            num_samples = min(num_samples, max(self.info.num_samples - self._position, 0))
        parts, missing = [np.empty((0, self.info.num_channels), np.float32)], num_samples
        while missing:
            part = self._waiting.pop(0) if self._waiting else self._next_samples()
            if part is None:
                break
            if len(part) > missing:
                self._waiting.insert(0, part[missing:])
                part = part[:missing]
            parts.append(part)
            missing -= len(part)
        self._position += num_samples - missing
        return np.concatenate(parts)

    def check_end(self) -> None:
        if self._kind == "ogg":
            ogg.refuse_cut(self._content, self._where)
        if self.info.num_samples is not None or not self._states_duration or self._container.streams.video:
            return
        seconds, stated = self._position / self.info.sample_rate, (self._container.duration or 0) / 1e6
        if seconds < stated - _CUT_SECONDS:
            problem = f"it was cut short: it ends at {seconds:.2f} s and states {stated:.2f} s."
            raise AudioError(self._where, problem, "Copy or record it again.")

    def close(self) -> None:
        if self._container is not None:
            self._container.close()
        self._content.close()

    def _open(self) -> list[Any]:
        """Opens the track and gives its first two frames: the first is shorter, by what the coder needs to swing in."""
        if self._container is not None:
            self._container.close()
        with self._faults("it cannot be opened"):
            self._container = _open_container(self._content, self._kind)
        if not self._container.streams.audio:
            raise AudioError(self._where, "it holds no sound track.", "Replace it by a recording with sound.")
        self._stream = self._container.streams.audio[0]
        if self._stream.codec_context is None:
            self._container.close()
            raise NotReadableError("its coding is known to nobody")
        self._states_duration = self._container.format.name.startswith(_STATED_DURATIONS)
        self._frames: Iterator[Any] = self._container.decode(self._stream)
        frames = [frame for frame in (self._next_frame(), self._next_frame()) if frame is not None]
        if not frames:
            raise AudioError(self._where, "no sound could be decoded from it.", _RECOPY)
        return frames

    def _stated_samples(self, sample_rate: int) -> int | None:
        """What the edit list of an MP4 file tells to the sample: its last packet is filled up with silence."""
        stream = self._stream
        if not self._container.format.name.startswith("mov,") or not stream.duration or not stream.frames:
            return None
        stated = stream.duration * stream.time_base * sample_rate
        is_believable = abs(stream.frames * self._num_each - stated) <= 3 * self._num_each
        return int(stated) if stated.denominator == 1 and is_believable else None

    def _next_frame(self) -> Any:
        with self._faults("its sound is damaged"):
            return next((frame for frame in self._frames if frame.samples), None)

    def _next_samples(self) -> np.ndarray | None:
        frame = self._next_frame()
        return None if frame is None else self._to_samples(frame)

    def _to_samples(self, frame: Any) -> np.ndarray:
        """A decoded frame as (N, channels) float32."""
        found = (frame.sample_rate, frame.layout.nb_channels)
        if found != (self.info.sample_rate, self.info.num_channels):
            problem = f"it changes in the middle to {found[0]} Hz and {found[1]} channels."
            raise AudioError(self._where, problem, _RECODE)
        try:
            values: np.ndarray = frame.to_ndarray()
        except ValueError as error:
            raise AudioError(self._where, f"it holds samples of the kind {frame.format.name}.", _RECODE) from error
        values = values.T if frame.format.is_planar else values.reshape(-1, found[1])
        if values.dtype.kind == "u":
            values = (values.astype(np.float32) - 128) / 128
        elif values.dtype.kind == "i":
            values = values * np.float32(2.0 ** (1 - 8 * values.dtype.itemsize))
        return np.ascontiguousarray(values, np.float32)

    def _seek(self, first: int) -> bool:
        """Goes to a packet at least the pre-roll before a sample; False where its number cannot be known."""
        is_even = self._stream.codec_context.name in _EVEN_CODERS
        if not is_even or self._first_stamp is None or self._container.format.name in _MISLEADING_CONTAINERS:
            return False
        stamps = self._stamps()
        origin = int(np.searchsorted(stamps, self._first_stamp, "right")) - 1  # the packet of the first frame
        before = (first - _PREROLL_SECONDS * self.info.sample_rate - self._num_first) // self._num_each
        target = min(origin + 1 + before, len(stamps) - 1)
        if origin < 0 or np.any(np.diff(stamps) <= 0):
            return False
        self._is_used = True
        with self._faults("it cannot be searched"):
            self._container.seek(int(stamps[target]), stream=self._stream)
        frame = self._next_frame()
        if frame is None or frame.samples != self._num_each:
            return False
        found = int(np.searchsorted(stamps, frame.pts))
        self._position = self._num_first + (found - origin - 1) * self._num_each
        self._waiting = [self._to_samples(frame)]
        return found < len(stamps) and bool(stamps[found] == frame.pts) and origin < found and self._position <= first

    def _stamps(self) -> np.ndarray:
        """The time stamps of all packets, in the unit of the track; found once by reading through without decoding."""
        key = self._content.mark
        found = _packet_stamps.get(key) if key is not None else None
        if found is None:
            with self._faults("it cannot be searched"), _open_container(self._content, self._kind) as container:
                packets = container.demux(container.streams.audio[0])
                found = np.array([packet.pts for packet in packets if packet.size and packet.pts is not None], np.int64)
            if len(_packet_stamps) >= _MOST_REMEMBERED:
                _packet_stamps.clear()
            if key is not None:
                _packet_stamps[key] = found
        return found

    @contextmanager
    def _faults(self, what: str) -> Iterator[None]:
        av = _library(self._kind)
        try:
            yield
        except av.error.FFmpegError as error:
            said = (error.strerror or str(error)).rstrip(".")
            if self._container is None:
                raise NotReadableError(said) from error
            where = f" after {self._position / self.info.sample_rate:.2f} s" if hasattr(self, "info") else ""
            raise AudioError(self._where, f"{what}{where}: {said}.", _RECOPY) from error


def _library(kind: str) -> Any:
    try:
        import av
    except ImportError as error:
        raise DependencyError.for_extra("av", "formats", f"Reading {kind} recordings") from error
    return av


def _open_container(content: Bytes, kind: str) -> Any:
    container = _library(kind).open(Stream(content), mode="r", metadata_errors="ignore")
    for stream in container.streams.audio:
        if stream.codec_context is not None:
            stream.codec_context.thread_count = 1  # one process reads one recording; there are enough processes
    return container
