"""MP3 files whose header says nothing, or too little, of their length.

libsndfile reads as many samples as the first frame tells (the Xing or Info frame); where there is none, it guesses
from the bit rate and drops the rest, of a variable-rate file often half. Given a first frame that promises too much,
it reads to the end.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from sonant.audio.kinds import size_of_tag
from sonant.audio.streams import Bytes

_BIT_RATES = (  # kbit/s of layer III by index, MPEG-1 and MPEG-2
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
)
_SAMPLE_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}  # by version bits
_TOO_MANY_FRAMES = 0x00FF_FFFF
_HAS_FRAMES, _HAS_BYTES = 1, 2
_ROOMY = 12  # a bit rate at which the first frame has room for its tag, whatever the sample rate


@dataclass(frozen=True)
class _Frame:
    """The header of one frame of layer III."""

    version: int
    is_mono: bool
    bit_rate: int  # index
    sample_rate: int  # index
    is_padded: bool

    @property
    def size(self) -> int:
        slots = (144_000 if self.version == 3 else 72_000) * _BIT_RATES[self.version != 3][self.bit_rate]
        return slots // _SAMPLE_RATES[self.version][self.sample_rate] + self.is_padded

    @property
    def tag_offset(self) -> int:
        """Where a Xing frame has its tag: behind the side information."""
        return 4 + ((17 if self.is_mono else 32) if self.version == 3 else (9 if self.is_mono else 17))


def with_honest_length(content: Bytes) -> tuple[Bytes, bool]:
    """The same sound under a first frame that does not end it early; and whether the length it tells is true."""
    start = size_of_tag(content.read_at(0, 10))
    head = content.read_at(start, 2048)
    frame = _frame(head)
    if frame is None:
        return content, False
    tag = head[frame.tag_offset : frame.tag_offset + 16]
    if tag[:4] not in (b"Xing", b"Info"):
        has_other_tag = head[36:40] == b"VBRI"
        return _Patched(_endless_frame(head), content, start + frame.size * has_other_tag), False
    flags, *numbers = struct.unpack(">III", tag[4:])
    said = numbers[1 if flags & _HAS_FRAMES else 0] if flags & _HAS_BYTES else 0
    goes_on = said and content.size - start - said > 2 * frame.size + 4096  # more than the tags that end a file
    if flags & _HAS_FRAMES and not goes_on:
        return content, True
    patched = bytearray(head)
    struct.pack_into(">II", patched, frame.tag_offset + 4, flags | _HAS_FRAMES, _TOO_MANY_FRAMES)
    return _Patched(bytes(patched), content, start + len(patched)), False


def _frame(head: bytes) -> _Frame | None:
    if len(head) < 64 or head[0] != 0xFF or head[1] & 0xE6 != 0xE2:  # layer III
        return None
    version, bit_rate, sample_rate = head[1] >> 3 & 3, head[2] >> 4, head[2] >> 2 & 3
    if version == 1 or bit_rate in (0, 15) or sample_rate == 3:
        return None
    return _Frame(version, head[3] >> 6 == 3, bit_rate, sample_rate, bool(head[2] & 2))


def _endless_frame(head: bytes) -> bytes:
    """A frame as the first one, silent, with a tag that promises far too many frames."""
    header = bytes((0xFF, head[1] | 1, _ROOMY << 4 | head[2] & 0x0C, head[3]))
    frame = _frame(header + bytes(64))
    assert frame is not None
    content = bytearray(header + bytes(frame.size - 4))
    struct.pack_into(">4sII", content, frame.tag_offset, b"Xing", _HAS_FRAMES, _TOO_MANY_FRAMES)
    return bytes(content)


class _Patched:
    """Other bytes with a new beginning: `head` in place of all before `first`."""

    def __init__(self, head: bytes, rest: Bytes, first: int) -> None:
        self._head, self._rest, self._first = head, rest, first
        self.size = len(head) + rest.size - first

    @property
    def mark(self) -> tuple[object, ...] | None:
        return self._rest.mark

    def read_at(self, offset: int, count: int) -> bytes:
        head = self._head[offset : offset + count]
        start = max(offset, len(self._head)) - len(self._head) + self._first
        return head + self._rest.read_at(start, count - len(head))

    def read_into(self, offset: int, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        content = self.read_at(offset, len(view))
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._rest.close()
