"""A segment of the store: arrays appended to one file, and their places to another.

`NAME.data` holds the bytes of arrays, `NAME.index` an entry of fixed size for each, written after its bytes.
An entry that is whole and whose checksum holds was written last of all that belongs to its array; whatever
lies behind the last such entry is an interrupted write, passed over by readers and cut off by the next writer.
One process writes a segment at a time, holding a lock on its index for as long as it lives.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import struct
import weakref
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

KEY_BYTES = 16
MAX_DIMENSIONS = 4
DTYPES = ("float32", "float16", "uint16", "int16", "int32", "int64", "uint8", "int8", "float64", "bool")

INDEX, DATA = ".index", ".data"

_ALIGNMENT = 64  # bytes: no array straddles a cache line with its first element
_HEADER = struct.Struct("<8sQ")  # mark, capacity in bytes
_MARK = b"sonant\x00\x01"
# key, offset, bytes, dtype, dimensions, shape, checksum of the bytes; then the checksum of all that
_ENTRY = struct.Struct(f"<{KEY_BYTES}sQQHH{MAX_DIMENSIONS}QI")
_CHECKSUM = struct.Struct("<I")
ENTRY_BYTES = _ENTRY.size + _CHECKSUM.size


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an array lies in its segment, and what it is."""

    key: bytes
    offset: int
    num_bytes: int
    dtype: str
    shape: tuple[int, ...]
    checksum: int

    @property
    def end(self) -> int:
        return self.offset + self.num_bytes

    def pack(self) -> bytes:
        shape = self.shape + (0,) * (MAX_DIMENSIONS - len(self.shape))
        kind = DTYPES.index(self.dtype)
        packed = _ENTRY.pack(self.key, self.offset, self.num_bytes, kind, len(self.shape), *shape, self.checksum)
        return packed + _CHECKSUM.pack(zlib.crc32(packed))

    @classmethod
    def unpack(cls, packed: bytes | memoryview) -> Entry | None:
        """The entry, or None where the bytes are not one that was wholly written."""
        if zlib.crc32(packed[: _ENTRY.size]) != _CHECKSUM.unpack(packed[_ENTRY.size :])[0]:
            return None
        key, offset, num_bytes, kind, dimensions, *shape, checksum = _ENTRY.unpack(packed[: _ENTRY.size])
        if kind >= len(DTYPES) or dimensions > MAX_DIMENSIONS:
            return None
        return cls(key, offset, num_bytes, DTYPES[kind], tuple(shape[:dimensions]), checksum)


class SegmentReader:
    """Reads a segment that others may be writing, or removing, meanwhile."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._parsed = _HEADER.size  # bytes of the index
        self._map: mmap.mmap | None = None

    def new_entries(self) -> Iterator[Entry]:
        """The entries that have been written since this was asked last."""
        if os.path.getsize(self.path + INDEX) < self._parsed + ENTRY_BYTES:
            return
        with open(self.path + INDEX, "rb") as file:
            file.seek(self._parsed)
            packed = memoryview(file.read())
        whole = len(packed) // ENTRY_BYTES
        for number in range(whole):
            entry = Entry.unpack(packed[number * ENTRY_BYTES : (number + 1) * ENTRY_BYTES])
            if entry is None and number == whole - 1:
                return  # perhaps only half written yet: looked at again next time
            self._parsed += ENTRY_BYTES
            if entry is not None:
                yield entry

    def array(self, entry: Entry, *, verify: bool) -> np.ndarray | None:
        """A read-only view of the file, or None where its bytes are not those that were written."""
        if not entry.num_bytes:
            return np.broadcast_to(np.zeros((), entry.dtype), entry.shape)  # read-only too
        data = self._bytes(entry.end)
        if data is None:
            return None
        found = memoryview(data)[entry.offset : entry.end]
        if verify and zlib.crc32(found) != entry.checksum:
            return None
        return np.frombuffer(found, entry.dtype).reshape(entry.shape)

    def _bytes(self, needed: int) -> mmap.mmap | None:
        """The file as memory, at least so many bytes of it; views keep the map they were made from alive."""
        if self._map is None or len(self._map) < needed:
            with open(self.path + DATA, "rb") as file:
                if os.fstat(file.fileno()).st_size < needed:
                    return None
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._map


class SegmentWriter:
    """The one process that appends to a segment."""

    def __init__(self, path: str, index: int, capacity: int) -> None:
        self.path, self.capacity, self.owner = path, capacity, os.getpid()
        self._index, self._data = index, os.open(path + DATA, os.O_RDWR | os.O_CREAT, 0o666)
        self._let_go = weakref.finalize(self, _close, self._index, self._data)
        # Half an entry is cut off; bytes that no entry speaks of are written over.
        whole = (os.fstat(index).st_size - _HEADER.size) // ENTRY_BYTES * ENTRY_BYTES
        self._index_end = _HEADER.size + max(whole, 0)
        os.ftruncate(index, self._index_end)
        self._end = max((entry.end for entry in SegmentReader(path).new_entries()), default=0)

    @classmethod
    def create(cls, path: str, capacity: int) -> SegmentWriter:
        index = os.open(path + INDEX, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        fcntl.flock(index, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _write(index, _HEADER.pack(_MARK, capacity), 0)
        return cls(path, index, capacity)

    @classmethod
    def adopt(cls, path: str) -> SegmentWriter | None:
        """Goes on with a segment whose writer has ended; None while it lives."""
        index = os.open(path + INDEX, os.O_RDWR)
        capacity = capacity_of(path)
        if capacity is None or not _lock(index):
            os.close(index)
            return None
        return cls(path, index, capacity)

    def has_room(self, num_bytes: int) -> bool:
        return _aligned(self._end) + num_bytes + self._index_end + ENTRY_BYTES <= self.capacity

    def append(self, key: bytes, array: np.ndarray) -> Entry:
        """Writes the bytes, then the entry that makes them count."""
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        offset = _aligned(self._end)
        entry = Entry(key, offset, content.nbytes, array.dtype.name, array.shape, zlib.crc32(content))
        _write(self._data, content, offset)
        _write(self._index, entry.pack(), self._index_end)
        self._end, self._index_end = entry.end, self._index_end + ENTRY_BYTES
        return entry

    def close(self) -> None:
        """Everything to the disk; the lock goes with the handle."""
        os.fsync(self._data)
        os.fsync(self._index)
        self.abandon()

    def abandon(self) -> None:
        """Lets go without a word: what a forked child does with a segment of its parent."""
        self._let_go()


def bytes_needed(num_bytes: int) -> int:
    """What one array of so many bytes adds to a segment at most, or fills one of its own with."""
    return _HEADER.size + ENTRY_BYTES + _ALIGNMENT + num_bytes


def capacity_of(path: str) -> int | None:
    """How large a segment may grow, index and all; None where its file is not one."""
    with open(path + INDEX, "rb") as file:
        header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_MARK):
        return None
    return int(_HEADER.unpack(header)[1])


def size_of(path: str) -> int:
    """Bytes on the disk, index and all."""
    size = 0
    for ending in (INDEX, DATA):
        with suppress(FileNotFoundError):
            size += os.path.getsize(path + ending)
    return size


def is_being_written(path: str) -> bool:
    index = os.open(path + INDEX, os.O_RDWR)
    try:
        return not _lock(index)
    finally:
        os.close(index)


def _close(*handles: int) -> None:
    for handle in handles:
        os.close(handle)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _aligned(offset: int) -> int:
    return math.ceil(offset / _ALIGNMENT) * _ALIGNMENT


def _write(handle: int, content: bytes | memoryview, offset: int) -> None:
    left = memoryview(content)
    while left:
        written = os.pwrite(handle, left, offset)
        left, offset = left[written:], offset + written
