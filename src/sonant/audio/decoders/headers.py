"""Where the samples of a file lie and how they are written: WAV, RF64, W64, AIFF, AU, CAF and NIST SPHERE.

Read here and not by libsndfile because a header may lie: whoever records into a pipe cannot go back to write the
size. And because a file that was cut short must be told from one whose size was never known.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sonant.audio.streams import Bytes
from sonant.base.errors import AudioError

# Sizes from here on are what programs write that do not know: ffmpeg 0xFFFFFFFF, sox 0x7FFFF000, arecord 0x80000000.
_UNKNOWN = 0x7FFF_0000
_UNLIMITED = 1 << 62
_LONGEST_TEXT = 1 << 16  # bytes of a NIST header; 1024 is usual
_PCM, _FLOAT, _A_LAW, _U_LAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_RECOPY = "Copy or record it again, or remove it."
_REWRITE = "Write its header anew, or remove it."
_NO_NAME = b"\0\0\0\0"  # where a chunk should begin: a file that was never finished, zeros to its end


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Samples of all channels side by side, in one stretch of the file."""

    coding: str  # "<i2", ">f4", "<u1", "ulaw", "alaw": as numpy calls them, and "<i3"; others are compressed
    num_channels: int
    sample_rate: int
    offset: int = 0  # bytes
    num_bytes: int = 0  # that are there
    promised_bytes: int | None = None  # that should be there; None: the writer did not know

    @property
    def is_plain(self) -> bool:
        """True where a sample is a number of its own and not compressed."""
        return bool(re.fullmatch(r"[<>](i[1-4]|u1|f[48])|[ua]law", self.coding))

    @property
    def share_present(self) -> float | None:
        """Of what was promised; None where nothing was."""
        return self.num_bytes / self.promised_bytes if self.promised_bytes else None

    @property
    def frame_bytes(self) -> int:
        """Of one sample of every channel."""
        return self.num_channels * (1 if self.coding.endswith("law") else int(self.coding[-1]))


def read_layout(content: Bytes, kind: str, where: str) -> Layout | None:
    """Where the samples lie in a file of this kind; None where such files say nothing of it."""
    reader = _READERS.get(kind)
    if reader is None:
        return None
    try:
        layout = reader(_File(content))
    except struct.error as error:
        raise AudioError(where, f"the file ends inside its {kind} header.", _RECOPY) from error
    except (OverflowError, ValueError) as error:  # of a sample rate written as a number with a fraction
        raise AudioError(where, "its header tells a sample rate that cannot be.", _REWRITE) from error
    if layout is None:
        raise AudioError(where, f"the {kind} header leads to no samples: it was cut short or never finished.", _RECOPY)
    if layout.num_channels < 1 or layout.sample_rate < 1:
        found = f"{layout.num_channels} channels at {layout.sample_rate} Hz"
        raise AudioError(where, f"its header speaks of {found}.", _REWRITE)
    if not layout.num_bytes:
        fault = "it was cut short" if layout.promised_bytes else "nothing was recorded"
        raise AudioError(where, f"the file holds a header and no samples: {fault}.", _RECOPY)
    return layout


@dataclass(frozen=True)
class _File:
    content: Bytes

    def unpack(self, layout: str, offset: int) -> tuple[Any, ...]:
        return struct.unpack(layout, self.content.read_at(offset, struct.calcsize(layout)))

    def chunks(self, order: str) -> Iterator[tuple[bytes, int, int]]:
        """Name, start and said size of the chunks of a RIFF or IFF file."""
        first = 12
        while first + 8 <= self.content.size:
            name, size = self.unpack(order + "4sI", first)
            if name == _NO_NAME:
                return
            yield name, first + 8, size
            first += 8 + size
            if size % 2 and self.content.read_at(first, 1) == b"\0":  # many programs forget to make sizes even
                first += 1

    def located(self, layout: Layout, offset: int, promised: int) -> Layout:
        """The layout with its samples from `offset` on, and as many bytes as promised if they are there."""
        present, promised = max(self.content.size - offset, 0), max(promised, 0)
        is_known = promised < _UNKNOWN or promised <= present
        return replace(
            layout, offset=offset, num_bytes=min(promised, present), promised_bytes=promised if is_known else None
        )

    def goes_on_after(self, end: int, order: str) -> bool:
        """True where sound goes on behind the size that the header tells: the header was written before the end was
        known, or the sound is longer than the 4 GiB that it can tell."""
        left, (said,) = self.content.size - end, self.unpack(order + "I", 4)
        if left < 16 or (left < 4096 and abs(said + 8 - end) <= 1):  # the header agrees with itself: this is padding
            return False
        if abs(said + 8 - self.content.size) <= 1 and not any(self.content.read_at(end, 16)):  # and so are zeros in it
            return False
        follows = [self.unpack(order + "4sI", start) for start in (end, end + 1)]
        is_chunk = any(re.fullmatch(rb"[ -~]{4}", name) and size <= left for name, size in follows)
        is_tag_of_players = left == 128 and self.content.read_at(end, 3) == b"TAG"
        return not (is_chunk or is_tag_of_players)


def _wav(file: _File) -> Layout | None:
    order = ">" if file.content.read_at(0, 4) == b"RIFX" else "<"
    layout, long_size = None, 0
    for name, start, size in file.chunks(order):
        if name == b"ds64":
            (long_size,) = file.unpack("<8xQ", start)
        elif name == b"fmt ":
            layout = _wav_format(file, start, size, order)
        elif name == b"data" and layout:
            if size == 0xFFFFFFFF and long_size:
                return file.located(layout, start, long_size)
            return file.located(layout, start, _UNLIMITED if file.goes_on_after(start + size, order) else size)
    return None


def _wav_format(file: _File, start: int, size: int, order: str) -> Layout:
    tag, channels, rate, _, frame_bytes, bits = file.unpack(order + "HHIIHH", start)
    if tag == _EXTENSIBLE and size >= 26:
        (tag,) = file.unpack(order + "H", start + 24)
    width = frame_bytes // channels if channels else 0
    if width * 8 < bits:  # some headers say nothing sensible of the frame
        width = (bits + 7) // 8
    numbers = {_PCM: f"{order}{'u' if width == 1 else 'i'}{width}", _FLOAT: f"{order}f{width}"}
    coding = (numbers | {_A_LAW: "alaw", _U_LAW: "ulaw"}).get(tag, f"wav codec {tag:#06x}")
    return Layout(coding=coding, num_channels=channels, sample_rate=rate)


def _w64(file: _File) -> Layout | None:
    first, layout = 40, None
    while first + 24 <= file.content.size:
        name, size = file.unpack("<4s12xQ", first)
        if name == _NO_NAME:
            break
        if name == b"fmt ":
            layout = _wav_format(file, first + 24, size - 24, "<")
        elif name == b"data" and layout:
            return file.located(layout, first + 24, size - 24)
        first += max(-(-size // 8) * 8, 24)  # chunks begin at multiples of 8
    return None


_AIFF_CODINGS = {  # AIFF-C, 1991, and what QuickTime added
    **dict.fromkeys((b"NONE", b"twos", b"in24", b"in32"), ">i"),
    **dict.fromkeys((b"fl32", b"FL32", b"fl64", b"FL64"), ">f"),
    **dict.fromkeys((b"ulaw", b"ULAW"), "ulaw"),
    **dict.fromkeys((b"alaw", b"ALAW"), "alaw"),
    b"sowt": "<i",
    b"raw ": ">u",
}


def _aiff(file: _File) -> Layout | None:
    layout, count = None, 0
    for name, start, size in file.chunks(">"):
        if name == b"COMM":
            channels, count, bits, exponent, mantissa = file.unpack(">hIhHQ", start)
            rate = round(mantissa * 2.0 ** (exponent - 16383 - 63))  # a number of 80 bits
            code = file.content.read_at(start + 18, 4) if file.content.read_at(8, 4) == b"AIFC" else b"NONE"
            coding = _AIFF_CODINGS.get(code, repr(code))
            coding += str((bits + 7) // 8) if len(coding) == 2 else ""
            layout = Layout(coding=coding, num_channels=channels, sample_rate=rate)
        elif name == b"SSND" and layout:
            (skipped,) = file.unpack(">I", start)
            promised = count * layout.frame_bytes if layout.is_plain else size - 8 - skipped
            return file.located(layout, start + 8 + skipped, promised or _UNLIMITED)
    return None


def _au(file: _File) -> Layout:
    order = ">" if file.content.read_at(0, 1) == b"." else "<"
    offset, size, code, rate, channels = file.unpack(order + "IIIII", 4)
    numbers = dict(enumerate((f"{order}{number}" for number in ("i1", "i2", "i3", "i4", "f4", "f8")), start=2))
    coding = (numbers | {1: "ulaw", 27: "alaw"}).get(code, f"au codec {code}")
    layout = Layout(coding=coding, num_channels=channels, sample_rate=rate)
    return file.located(layout, offset, size or _UNLIMITED)


def _caf(file: _File) -> Layout | None:
    first, layout = 8, None
    while first + 12 <= file.content.size:
        name, size = file.unpack(">4sq", first)
        if name == _NO_NAME:
            break
        if name == b"desc":
            rate, code, flags, _, _, channels, bits = file.unpack(">d4sIIIII", first + 12)
            numbers = {b"lpcm": f"{'<' if flags & 2 else '>'}{'f' if flags & 1 else 'i'}{-(-bits // 8)}"}
            coding = (numbers | {b"ulaw": "ulaw", b"alaw": "alaw"}).get(code, repr(code))
            layout = Layout(coding=coding, num_channels=channels, sample_rate=round(rate))
        elif name == b"data" and layout:
            return file.located(layout, first + 16, _UNLIMITED if size < 0 else size - 4)  # behind the number of edits
        first += 12 + max(size, 0)
    return None


def _nist(file: _File) -> Layout:
    """The SPHERE format: a header of text, whose size is on its second line."""
    found = re.match(rb"NIST_1A\s+(\d+)", file.content.read_at(0, 64))
    offset = int(found[1]) if found else 1024
    lines = re.findall(
        r"^(\w+) -\w+ (\S+)", file.content.read_at(0, min(offset, _LONGEST_TEXT)).decode("latin-1"), re.MULTILINE
    )
    fields = {"sample_coding": "pcm", "sample_n_bytes": "2", "sample_count": "0"} | dict(lines)
    order = ">" if fields.get("sample_byte_format") == "10" else "<"
    codings = {"pcm": f"{order}i{fields['sample_n_bytes']}", "ulaw": "ulaw", "mu-law": "ulaw", "alaw": "alaw"}
    layout = Layout(
        coding=codings.get(fields["sample_coding"], fields["sample_coding"]),
        num_channels=_number(fields.get("channel_count", "1")),
        sample_rate=_number(fields.get("sample_rate", "0")),
    )
    promised = _number(fields["sample_count"]) * layout.frame_bytes if layout.is_plain else 0
    return file.located(layout, offset, promised or _UNLIMITED)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


_READERS = {"wav": _wav, "rf64": _wav, "w64": _w64, "aiff": _aiff, "au": _au, "caf": _caf, "nist": _nist}
