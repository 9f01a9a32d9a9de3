"""The bytes of a recording, wherever they lie: a file, a stretch of a file, memory, a bucket.

Everything is read at an explicit offset and nothing has a position, so threads and forked processes may share it.
"""

from __future__ import annotations

import io
import os
import stat
from functools import cached_property
from typing import Any, Protocol

from sonant.base import storage
from sonant.base.errors import AudioError, StorageError
from sonant.base.remote import open_seekable

_FIRST_FETCH, _LAST_FETCH = 1 << 18, 1 << 23  # bytes asked of a bucket at once; grows while it is read in order
_KEPT_FETCHES = 3  # the head, the tail and the middle: what opening a compressed recording jumps between


class Bytes(Protocol):
    """A fixed number of bytes."""

    size: int

    @property
    def mark(self) -> tuple[object, ...] | None:
        """Changes when the file behind the bytes does; None where nothing can tell."""
        ...

    def read_at(self, offset: int, count: int) -> bytes:
        """As many bytes as asked for, fewer where they end."""
        ...

    def read_into(self, offset: int, buffer: Any) -> int:
        """Fills a writable buffer and gives the number of bytes, fewer where they end."""
        ...

    def close(self) -> None: ...


class LocalFile:
    """A regular file, opened once."""

    descriptor = -1  # until it is open, and when it is closed

    def __init__(self, location: str) -> None:
        try:
            with storage.storage_errors(location):  # a pipe must not make us wait for its writer: hence O_NONBLOCK
                self.descriptor = os.open(location, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except ValueError as error:  # it holds a zero byte, or half of a character
            raise AudioError(ascii(location), f"this is no name of a file: {error}.", "Correct it.") from error
        found = os.fstat(self.descriptor)
        self.location, self.size = location, found.st_size
        self.mark = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
            raise AudioError(location, f"this is {what}, a file is needed.", "Name a recording.")

    def read_at(self, offset: int, count: int) -> bytes:
        count = max(min(count, self.size - offset), 0)
        try:
            found = os.pread(self.descriptor, count, offset)
            while len(found) < count and (more := os.pread(self.descriptor, count - len(found), offset + len(found))):
                found += more  # the system gives no more than 2 GiB at once
        except OSError as error:
            raise self._unreadable(error) from error
        return found

    def read_into(self, offset: int, buffer: Any) -> int:
        view, count = memoryview(buffer).cast("B"), 0
        try:
            while count < len(view) and (more := os.preadv(self.descriptor, [view[count:]], offset + count)):
                count += more
        except OSError as error:
            raise self._unreadable(error) from error
        return count

    def _unreadable(self, error: OSError) -> StorageError:
        return StorageError(self.location, f"the storage answered: {error}.", "Check the disk and try again.")

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __del__(self) -> None:
        self.close()


class Memory:
    """Bytes that are at hand already."""

    mark = None

    def __init__(self, content: bytes | memoryview) -> None:
        self._view = memoryview(content).cast("B")
        self.size = len(self._view)

    def read_at(self, offset: int, count: int) -> bytes:
        return bytes(self._view[offset : offset + count])

    def read_into(self, offset: int, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        part = self._view[offset : offset + len(target)]
        target[: len(part)] = part
        return len(part)

    def close(self) -> None:
        pass


class Window:
    """A stretch of other bytes, which it closes with itself."""

    def __init__(self, outer: Bytes, offset: int, size: int) -> None:
        self._outer, self._offset = outer, offset
        self.size = max(min(size, outer.size - offset), 0)

    @property
    def mark(self) -> tuple[object, ...] | None:
        return None if self._outer.mark is None else (*self._outer.mark, self._offset, self.size)

    def read_at(self, offset: int, count: int) -> bytes:
        return self._outer.read_at(self._offset + offset, max(min(count, self.size - offset), 0))

    def read_into(self, offset: int, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        return self._outer.read_into(self._offset + offset, view[: max(self.size - offset, 0)])

    def close(self) -> None:
        self._outer.close()


class RemoteFile:
    """A file behind a URI, fetched by ranges that grow while it is read in order."""

    def __init__(self, location: str) -> None:
        self.location = location
        with storage.storage_errors(location):
            # Without a cache of its own: s3fs would fetch 50 MB for a segment of one second.
            self._file = open_seekable(location, cache_type="none")
            self.size = self._file.seek(0, os.SEEK_END)
        self._fetched: list[tuple[int, bytes]] = []
        self._step = _FIRST_FETCH

    @cached_property
    def mark(self) -> tuple[object, ...]:
        return storage.fingerprint(self.location)

    def read_at(self, offset: int, count: int) -> bytes:
        count = max(min(count, self.size - offset), 0)
        for start, content in reversed(self._fetched):
            if start <= offset and offset + count <= start + len(content):
                return content[offset - start : offset - start + count]
        is_next = bool(self._fetched) and 0 <= offset - self._fetched[-1][0] <= len(self._fetched[-1][1])
        self._step = min(self._step * 2, _LAST_FETCH) if is_next else _FIRST_FETCH
        content = self._fetch(offset, max(count, self._step))
        self._fetched = [*self._fetched[-_KEPT_FETCHES + 1 :], (offset, content)]
        return content[:count]

    def _fetch(self, offset: int, count: int) -> bytes:
        with storage.storage_errors(self.location):
            self._file.seek(offset)
            content: bytes = self._file.read(min(count, self.size - offset))
            return content

    def read_into(self, offset: int, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        content = self.read_at(offset, len(view))
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()


def open_bytes(location: str) -> LocalFile | RemoteFile:
    """The bytes of a file, local or remote."""
    return RemoteFile(location) if storage.is_remote(location) else LocalFile(location)


class Stream(io.RawIOBase):
    """The same bytes with a position, for libraries that want a file."""

    def __init__(self, content: Bytes) -> None:
        self._content, self._position = content, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._content.read_into(self._position, buffer)
        self._position += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = (0, self._position, self._content.size)[whence]
        self._position = max(start + offset, 0)
        return self._position

    def tell(self) -> int:
        return self._position
