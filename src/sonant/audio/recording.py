"""One recording, wherever it lies and whatever its format: its facts, its blocks from start to end, any segment.

    with open_recording("talks/a.flac") as recording:
        recording.info.sample_rate
        segment = recording.read(first=16000, num_samples=8000)  # (8000, channels) float32

A segment is found by seeking and equals the slice of the whole; each decoder says how exactly. What is read depends on
the file alone, never on what was read before. Opening costs some 0.02 ms (WAV) to 0.4 ms (Vorbis), a tenth of decoding
a few seconds or less, so nothing is kept open between segments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from sonant.audio.address import Address
from sonant.audio.containers import open_member
from sonant.audio.decoders.arrays import ArrayDecoder
from sonant.audio.decoders.decoder import Decoder, NotReadableError, RecordingInfo
from sonant.audio.decoders.headers import read_layout
from sonant.audio.decoders.libav import LibavDecoder
from sonant.audio.decoders.libsndfile import LibsndfileDecoder
from sonant.audio.decoders.pcm import PcmDecoder
from sonant.audio.kinds import FOR_LIBAV, HEAD_BYTES, explain, kind_of, size_of_tag, unknown
from sonant.audio.resample import SAMPLE_RATES
from sonant.audio.streams import Bytes, open_bytes
from sonant.base.errors import AudioError, DependencyError

__all__ = ["Recording", "RecordingInfo", "open_recording"]

_BLOCK = 1 << 20  # samples at a time: what is asked for may be far more than there is


class Recording:
    """An open recording."""

    def __init__(self, where: str, decoder: Decoder) -> None:
        self.where, self._decoder = where, decoder

    @property
    def info(self) -> RecordingInfo:
        return self._decoder.info

    def blocks(self, num_samples: int, first: int = 0) -> Iterator[np.ndarray]:
        """Everything from `first` to the end as (N, channels) float32, the last block shorter. Refuses, at the end, a
        file that was cut although no header promised more."""
        assert num_samples > 0
        self._decoder.start_at(first)
        while len(block := self._decoder.read(num_samples)):
            yield block
            if len(block) < num_samples:
                break
        self._decoder.check_end()

    def read(self, first: int, num_samples: int | None) -> np.ndarray:
        """A segment (N, channels) float32, or all from `first` on; shorter where the recording ends."""
        if first < 0 or (num_samples is not None and num_samples < 0):
            raise AudioError(self.where, "a segment before its beginning was asked for.", "Correct start and seconds.")
        self._decoder.start_at(first)
        missing = math.inf if num_samples is None else num_samples
        parts = [self._decoder.read(int(min(missing, _BLOCK)))]
        while len(parts[-1]) == _BLOCK < missing:
            missing -= _BLOCK
            parts.append(self._decoder.read(int(min(missing, _BLOCK))))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]


@contextmanager
def open_recording(audio: str, *, sample_rate: int | None = None) -> Iterator[Recording]:
    """Opens a recording by its address; `sample_rate` is that of bare arrays of numbers in datasets."""
    decoder = _open_decoder(audio, sample_rate)
    try:
        yield Recording(audio, decoder)
    finally:
        decoder.close()


def _open_decoder(audio: str, sample_rate: int | None) -> Decoder:
    address = Address.parse(audio)
    if address.member is None:
        content: Bytes | ArrayDecoder = open_bytes(address.location)
    else:
        content = open_member(address, audio, sample_rate)
    try:
        decoder = content if isinstance(content, ArrayDecoder) else _decoder_for(content, audio)
        _check(decoder.info, audio)
        return decoder
    except BaseException:
        content.close()
        raise


def _check(info: RecordingInfo, where: str) -> None:
    if info.num_samples == 0:
        raise AudioError(where, "it holds no samples.", "Record it again, or remove it.")
    if info.sample_rate not in SAMPLE_RATES:
        problem = f"its header says {info.sample_rate} Hz, which is no sample rate of sound."
        raise AudioError(where, problem, "Write its header anew, or remove it.")


def _decoder_for(content: Bytes, where: str) -> Decoder:
    """The decoder for what the bytes are."""
    head = content.read_at(0, HEAD_BYTES)
    kind = kind_of(head)
    if not kind and (explained := explain(head, content.size)):
        raise AudioError(where, *explained)
    if tag := size_of_tag(head):
        kind = kind_of(content.read_at(tag, HEAD_BYTES)) or "mp3"
    layout = read_layout(content, kind, where)
    if layout is not None and layout.is_plain:
        return PcmDecoder(content, layout, kind)
    try:
        if kind in FOR_LIBAV:
            return LibavDecoder(content, where, kind)
        return LibsndfileDecoder(content, where, kind, 1.0 if layout is None else layout.share_present)
    except NotReadableError as error:
        if not kind:
            raise AudioError(where, *unknown(head)) from error
        return _last_resort(content, where, kind, str(error))


def _last_resort(content: Bytes, where: str, kind: str, reason: str) -> Decoder:
    """What libsndfile cannot read, PyAV perhaps can."""
    action = "Convert it to WAV or FLAC, or remove it."
    if kind not in FOR_LIBAV:
        try:
            return LibavDecoder(content, where, kind)
        except NotReadableError as error:
            reason = f"{reason}; {error}"
        except DependencyError:
            action = "Convert it to WAV or FLAC; or try pip install 'sonant[formats]', which reads more kinds."
    raise AudioError(where, f"this begins as a recording of the kind {kind}, but cannot be decoded: {reason}.", action)
