"""The store: arrays that were computed once, found again by a key that says everything they depend on.

It knows no network: whoever computes hands in keys and arrays. Any difference in a key is a miss, and so is
anything that is not exactly what was written. Many processes read and write one folder at a time; each
appends to a segment of its own, and the oldest whole segments make room for new ones.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from threading import RLock
from types import TracebackType
from typing import Self

import numpy as np

from sonant.base.errors import ConfigError
from sonant.base.storage import storage_errors
from sonant.batches import segment
from sonant.batches.segment import DATA, INDEX, Entry, SegmentReader, SegmentWriter


@dataclass(frozen=True, kw_only=True)
class FeatureKey:
    """Everything that a frozen network's output for an utterance depends on."""

    content: str  # hash of the recording's samples
    start: float  # seconds
    seconds: float
    channel: int | None
    front_end: str  # hash of its config
    weights: str  # hash of the frozen ones
    layer: str
    precision: str  # of the computation and of what is kept: bfloat16 is kept as uint16

    def digest(self) -> bytes:
        written = json.dumps(astuple(self), ensure_ascii=True)
        return hashlib.blake2b(written.encode(), digest_size=segment.KEY_BYTES).digest()


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    max_bytes: int = 50_000_000_000  # of all segments together, whoever writes them
    segment_bytes: int | None = None  # what goes at a time; None: a sixteenth of all, at most 1 GB
    verify: bool = True  # compares checksums at every reading: about 1 ms for 1 MB

    def __post_init__(self) -> None:
        if self.max_bytes < 1:
            raise ConfigError("max_bytes", f"{self.max_bytes} was found, bytes above 0 are required.", "Raise it.")

    @property
    def capacity(self) -> int:
        return self.segment_bytes or min(self.max_bytes // 16, 10**9)


@dataclass(frozen=True, kw_only=True)
class StoreStats:
    """What this process asked and was given; the last two are of the whole store."""

    num_hits: int
    num_misses: int
    num_refused: int  # arrays that found no room
    num_arrays: int
    num_bytes: int


class Store:
    """`get` what was `put`; read-only arrays that stay whole even when their segment goes."""

    def __init__(self, folder: str, config: StoreConfig = StoreConfig()) -> None:
        self.folder, self.config = folder, config
        self._lock = RLock()
        self._readers: dict[str, SegmentReader] = {}
        self._places: dict[bytes, tuple[str, Entry]] = {}  # by key: the segment's name, and where in it
        self._writer: SegmentWriter | None = None
        self._num_hits = self._num_misses = self._num_refused = 0
        with storage_errors(folder):
            os.makedirs(folder, exist_ok=True)
            self._look_again()

    def get(self, key: bytes) -> np.ndarray | None:
        """The array of this key, or None: then compute it, and put it."""
        array = self._found(key)
        if array is None:
            with self._lock, storage_errors(self.folder):
                self._look_again()  # another process may have written it meanwhile
            array = self._found(key)
        with self._lock:
            self._num_hits += array is not None
            self._num_misses += array is None
        return array

    def get_many(self, keys: Sequence[bytes]) -> list[np.ndarray | None]:
        return [self.get(key) for key in keys]

    def put(self, key: bytes, array: np.ndarray) -> bool:
        """Keeps an array; False where the size limit leaves no room for it."""
        assert len(key) == segment.KEY_BYTES
        assert array.dtype.name in segment.DTYPES, f"{array.dtype} is not kept"
        assert array.ndim <= segment.MAX_DIMENSIONS
        with self._lock, storage_errors(self.folder):
            if key in self._places:
                return True
            writer = self._writer_for(array.nbytes)
            if writer is None:
                self._num_refused += 1
                return False
            self._places[key] = os.path.basename(writer.path), writer.append(key, array)
            return True

    @property
    def stats(self) -> StoreStats:
        with self._lock:
            return StoreStats(
                num_hits=self._num_hits,
                num_misses=self._num_misses,
                num_refused=self._num_refused,
                num_arrays=len(self._places),
                num_bytes=sum(segment.size_of(self._path(name)) for name in self._names()),
            )

    def close(self) -> None:
        """Lets others go on with the segment that this process was writing."""
        with self._lock:
            writer, self._writer = self._own_writer(), None
            if writer:
                writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _found(self, key: bytes) -> np.ndarray | None:
        with self._lock:
            name, entry = self._places.get(key, ("", None))
            reader = self._readers.get(name)
        if entry is None or reader is None:
            return None
        with suppress(FileNotFoundError):  # its segment has just gone
            if (array := reader.array(entry, verify=self.config.verify)) is not None:
                return array
        with self._lock:
            self._places.pop(key, None)
        return None

    def _look_again(self) -> None:
        """Takes in what other processes have written and removed since."""
        names = self._names()
        if gone := self._readers.keys() - set(names):
            self._places = {key: place for key, place in self._places.items() if place[0] not in gone}
            self._readers = {name: reader for name, reader in self._readers.items() if name not in gone}
        for name in names:
            reader = self._readers.setdefault(name, SegmentReader(self._path(name)))
            with suppress(FileNotFoundError):
                self._places.update((entry.key, (name, entry)) for entry in reader.new_entries())

    def _writer_for(self, num_bytes: int) -> SegmentWriter | None:
        writer = self._own_writer()
        if writer is None or not writer.has_room(num_bytes):
            if writer:
                writer.close()
            with self._alone():
                writer = self._adopted(num_bytes) or self._created(num_bytes)
            self._look_again()
        self._writer = writer
        return writer

    def _own_writer(self) -> SegmentWriter | None:
        """The segment that this process writes; a forked child leaves its parent's alone."""
        if self._writer and self._writer.owner != os.getpid():
            self._writer.abandon()
            self._writer = None
        return self._writer

    def _adopted(self, num_bytes: int) -> SegmentWriter | None:
        """The newest segment that its process has left with at least a quarter free."""
        for name in reversed(self._names()):
            path = self._path(name)
            capacity = segment.capacity_of(path) or 0
            left = capacity - segment.size_of(path)
            is_worth_it = left >= max(capacity / 4, segment.bytes_needed(num_bytes))
            if is_worth_it and not segment.is_being_written(path) and self._room_for(left, keeping=name):
                return SegmentWriter.adopt(path)
        return None

    def _created(self, num_bytes: int) -> SegmentWriter | None:
        capacity = max(self.config.capacity, segment.bytes_needed(num_bytes))
        if not self._room_for(capacity):
            return None
        last = max((int(name.partition("-")[0]) for name in self._names()), default=0)
        # A name never comes again: a slow reader must not take a new segment for one that has gone.
        return SegmentWriter.create(self._path(f"{last + 1:08}-{secrets.token_hex(4)}"), capacity)

    def _room_for(self, num_bytes: int, keeping: str = "") -> bool:
        """Removes the oldest segments that nobody writes until so many bytes more are within the limit."""
        sizes = {name: self._reserved(name) for name in self._names()}
        removable = [name for name in sizes if name != keeping and not segment.is_being_written(self._path(name))]
        over = sum(sizes.values()) + num_bytes - self.config.max_bytes
        if over > sum(sizes[name] for name in removable):
            return False
        for name in removable:
            if over <= 0:
                break
            over -= sizes[name]
            os.unlink(self._path(name) + INDEX)
            with suppress(FileNotFoundError):
                os.unlink(self._path(name) + DATA)
        return True

    def _reserved(self, name: str) -> int:
        """What a segment takes: all that it may grow to, while somebody writes it."""
        path = self._path(name)
        size = segment.size_of(path)
        return max(size, segment.capacity_of(path) or 0) if segment.is_being_written(path) else size

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time begins or removes segments."""
        with open(os.path.join(self.folder, "lock"), "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._remove_orphans()
            yield

    def _remove_orphans(self) -> None:
        """Data whose index has gone: a removal that was interrupted."""
        for found in os.listdir(self.folder):
            name, ending = os.path.splitext(found)
            if ending == DATA and not os.path.exists(self._path(name) + INDEX):
                os.unlink(self._path(name) + DATA)

    def _names(self) -> list[str]:
        """All segments, the oldest first."""
        found = (os.path.splitext(entry) for entry in os.listdir(self.folder))
        return sorted(name for name, ending in found if ending == INDEX)

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)
