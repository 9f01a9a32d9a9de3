"""FLAC, Ogg Vorbis, Opus, MP3 and the compressed kinds of WAV and its cousins, through libsndfile.

How exact a seek is: to the bit; but for MP3, to 1e-6; and for Opus, to the bit within the first 30 s and to 0.005
beyond: its speech coder never wholly forgets what came before, and a pre-roll of 3 s leaves the same 0.003 as 1 s.
Decoding begins before the sample that is wanted where libsndfile would miss it: in MP3, in Opus, at the end of Vorbis.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import numpy as np

from sonant.audio.decoders import mp3, ogg
from sonant.audio.decoders.decoder import NotReadableError, RecordingInfo
from sonant.audio.decoders.quiet import without_chatter
from sonant.audio.streams import Bytes, LocalFile, Stream
from sonant.base.errors import AudioError

_FROM_START_SECONDS = 30  # of Opus, which decodes 600 times faster than it sounds
_PREROLL_SECONDS = 1
# A frame of MP3 takes bits from up to 511 bytes before it, which in the smallest frames are 23 frames of sound.
_MPEG_PREROLL_SAMPLES = 32 * 1152
_VORBIS_PREROLL_SAMPLES = 8192  # the longest block
_NOT_SEEKABLE = ("caf/alac_", "aiff/dwvw_")  # codings in which seeks of libsndfile miss or fail
_MISREAD = ("paf/pcm_24",)  # codings of which libsndfile loses the end when they are read in pieces
_ENDLESS = 1 << 48  # samples: more is how libsndfile says that it does not know
_SKIPPED_SAMPLES = 1 << 16
_STREAM_BUFFER = 1 << 16


class LibsndfileDecoder:
    """One recording, opened through libsndfile; `share` of what its header promises is there."""

    def __init__(self, content: Bytes, where: str, kind: str, share: float | None = 1.0) -> None:
        self._content, self._where, self._kind = content, where, kind
        self._may_chatter = kind in ("", "mp3", "wav", "rf64", "w64")  # what MPEG sound lies in
        if kind == "mp3":
            self._content, is_known = mp3.with_honest_length(content)
            share = 1.0 if is_known else None
        if kind == "ogg" and ogg.is_chained(content):
            problem = "several recordings stand one after another in this Ogg file, and only the first would be read."
            raise AudioError(where, problem, "Join them: ffmpeg -i FILE joined.flac")
        self._file: Any = self._open()
        file = self._file
        if kind != "mp3" and "MPEG" in file.subtype:  # within WAV its length is guessed from the mean bit rate
            share = None
        self.info = RecordingInfo(
            sample_rate=file.samplerate,
            num_channels=file.channels,
            num_samples=round(file.frames / share) if share and 0 <= file.frames < _ENDLESS else None,
            encoding=kind if kind in ("flac", "mp3") else f"{kind or file.format.lower()}/{file.subtype.lower()}",
        )
        if self.info.encoding.startswith(_MISREAD):
            file.close()
            raise NotReadableError("libsndfile reads such files wrongly")
        self._is_mpeg = kind == "mp3" or "mpeg" in self.info.encoding
        self._is_used = self._is_exhausted = False

    def start_at(self, first: int) -> None:
        start = self._start_for(first)
        if self._is_used:  # libsndfile's Vorbis and MP3 remember where they were: begin anew
            self._file.close()
            self._file = self._open()
        self._is_used = True
        self._is_exhausted = start >= self._file.frames  # where libsndfile would refuse to go
        if start and not self._is_exhausted:
            with self._faults():
                self._file.seek(start)
        self._skip(first - start)

    def _start_for(self, first: int) -> int:
        """Where decoding must begin for the sample to be what it is in the whole."""
        encoding, rate = self.info.encoding, self.info.sample_rate
        if not self._is_seekable():
            return 0
        if encoding == "ogg/opus":
            is_near = first <= _FROM_START_SECONDS * rate
            return 0 if is_near or not self._opus_seeks_right else first - _PREROLL_SECONDS * rate
        if encoding == "ogg/vorbis":
            return min(first, self._before_last_page)
        return max(first - _MPEG_PREROLL_SAMPLES, 0) if self._is_mpeg else first

    @cached_property
    def _before_last_page(self) -> int:
        """The last sample of a Vorbis file that a seek finds: in the last page it lands beside it, by what the encoder
        filled the page up with."""
        num_last = ogg.samples_of_last_page(self._content)
        return 0 if num_last is None else max(self._file.frames - num_last - _VORBIS_PREROLL_SAMPLES, 0)

    @cached_property
    def _opus_seeks_right(self) -> bool:
        return ogg.opus_counts_from_zero(self._content, self._file.frames, self.info.sample_rate)

    def _is_seekable(self) -> bool:
        import soundfile

        return bool(soundfile.SoundFile.seekable(self._file)) and not self.info.encoding.startswith(_NOT_SEEKABLE)

    def _skip(self, num_samples: int) -> None:
        while num_samples and (skipped := len(self.read(min(num_samples, _SKIPPED_SAMPLES)))):
            num_samples -= skipped

    def read(self, num_samples: int) -> np.ndarray:
        self._is_used = True
        if self._is_exhausted:
            return np.empty((0, self.info.num_channels), np.float32)
        with self._faults():
            samples: np.ndarray = self._file.read(num_samples, dtype="float32", always_2d=True)
        return samples

    def check_end(self) -> None:
        if self._kind == "ogg":
            ogg.refuse_cut(self._content, self._where)

    def close(self) -> None:
        self._file.close()
        self._content.close()

    def _open(self) -> Any:
        import soundfile

        content = self._content
        self._stream = None if isinstance(content, LocalFile) else _CarefulStream(content)
        with without_chatter(self._may_chatter):
            try:
                if isinstance(content, LocalFile):
                    os.lseek(content.descriptor, 0, os.SEEK_SET)
                    return _unseeking_file()(content.descriptor, closefd=False)
                return _unseeking_file()(self._stream)
            except soundfile.LibsndfileError as error:
                self._raise_fault_of_stream()
                raise NotReadableError(error.error_string.rstrip(". ")) from error

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turns what libsndfile says of damaged data into a sentence."""
        import soundfile

        try:
            with without_chatter(self._may_chatter):
                yield
        except soundfile.LibsndfileError as error:
            self._raise_fault_of_stream()
            seconds = max(self._file.tell(), 0) / self.info.sample_rate
            problem = f"it is damaged or cut short after {seconds:.2f} s: {error.error_string.rstrip('. ')}."
            raise AudioError(self._where, problem, "Copy or record it again, or remove it.") from error
        self._raise_fault_of_stream()

    def _raise_fault_of_stream(self) -> None:
        if self._stream is not None and self._stream.fault is not None:
            raise self._stream.fault


@cache
def _unseeking_file() -> Any:
    import soundfile

    class Unseeking(soundfile.SoundFile):  # type: ignore[misc]
        """soundfile seeks after each read if it can: FLAC takes twice the time, MP3 differs in the last bit."""

        def seekable(self) -> bool:
            return False

    return Unseeking


class _CarefulStream:
    """Bytes for libsndfile, which cannot pass an exception on: it is kept, and raised when the call is over."""

    def __init__(self, content: Bytes) -> None:
        self._stream = io.BufferedReader(Stream(content), _STREAM_BUFFER)
        self.fault: Exception | None = None
        self.seek, self.tell = self._stream.seek, self._stream.tell

    def readinto(self, buffer: Any) -> int:
        try:
            return self._stream.readinto(buffer)
        except Exception as error:
            self.fault = error
            return 0
