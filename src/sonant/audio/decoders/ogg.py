"""What the pages of an Ogg file tell of its end, which libsndfile passes over in silence (RFC 3533)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from sonant.audio.streams import Bytes
from sonant.base.errors import AudioError

_LARGEST_PAGE = 27 + 255 + 255 * 255
_BEGINS_STREAM = 2
_UNKNOWN = -1  # the stream of a page whose header is cut


@dataclass(frozen=True)
class _Page:
    start: int
    flags: int
    stream: int
    end: int
    position: int  # samples up to the end of its last whole packet; -1: no packet ends in it


def refuse_cut(content: Bytes, where: str) -> None:
    """Refuses a file whose last page promises more bytes than follow."""
    last = _last_page(content)
    if last is None or last.end > content.size:
        raise AudioError(where, "it was cut short: its last page is not whole.", "Copy or record it again.")


def is_chained(content: Bytes) -> bool:
    """True where several recordings stand one after another; libsndfile would read the first and stop."""
    first_streams = set()
    for page in _pages(content, 0):
        if not page.flags & _BEGINS_STREAM:
            break
        first_streams.add(page.stream)
    last = next((page for page in _pages_from_the_end(content) if page.stream != _UNKNOWN), None)
    return last is not None and bool(first_streams) and last.stream not in first_streams


def samples_of_last_page(content: Bytes) -> int | None:
    """How many samples the last page holds; None where the end of the file does not tell."""
    last = None
    for page in _pages_from_the_end(content):
        if page.position < 0:
            continue
        if last is None:
            last = page
        elif page.stream == last.stream:
            return last.position - page.position if page.position <= last.position else None
    return None


def opus_counts_from_zero(content: Bytes, num_samples: int, sample_rate: int) -> bool:
    """False where the positions of Opus begin elsewhere (RFC 7845, 4.2), as in what was cut from a longer stream:
    libsndfile knows how long such a file is, but seeks beside what it is asked for."""
    head = content.read_at(0, 27 + 255 + 19)
    found, factor = head.find(b"OpusHead"), 48000 // sample_rate
    last = next((page for page in _pages_from_the_end(content) if page.position >= 0), None)
    if last is None or not 0 <= found <= len(head) - 19:
        return False
    (pre_skip,) = struct.unpack_from("<H", head, found + 10)
    return bool(abs(last.position - pre_skip - num_samples * factor) <= factor)


def _pages(content: Bytes, start: int) -> Iterator[_Page]:
    while (page := _page(content, start)) is not None:
        yield page
        start = page.end


def _page(content: Bytes, start: int) -> _Page | None:
    """The page that begins here; one whose header is cut ends beyond the file."""
    head = content.read_at(start, 27 + 255)
    if not head.startswith(b"OggS"):
        return None
    if len(head) < 27 or len(head) < 27 + head[26]:
        return _Page(start, 0, _UNKNOWN, content.size + 1, -1)
    flags, position, stream, num_segments = struct.unpack_from("<5xBqI8xB", head)
    end = start + 27 + num_segments + sum(head[27 : 27 + num_segments])
    return _Page(start, flags, stream, end, position)


def _last_page(content: Bytes) -> _Page | None:
    return next(_pages_from_the_end(content), None)


def _pages_from_the_end(content: Bytes) -> Iterator[_Page]:
    """The last pages, the very last first: two of them at least, if there are so many."""
    first = max(content.size - 2 * _LARGEST_PAGE, 0)
    tail = content.read_at(first, 2 * _LARGEST_PAGE)
    found = tail.rfind(b"OggS")
    while found >= 0:
        if (page := _page(content, first + found)) is not None:
            yield page
        found = tail.rfind(b"OggS", 0, found)
