"""The members of a zip or tar, and where each would lie: never outside, never through a link.

What is inside is declared by whoever made it, so every size is counted before anything is unpacked.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO

from sonant.audio.streams import Stream, open_bytes
from sonant.base.errors import SourceError
from sonant.corpus.sources.locate import is_audio, is_litter
from sonant.corpus.utterance import Finding

_UNPACKED_FREELY = 1 << 30  # bytes
_MOST_TIMES = 200  # its own size, that an archive may unpack to beyond those; speech with its tables has about 2
_SEEKABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_TAR_BLOCK = 512  # bytes; of zeros after the last member
_ENCRYPTED = 1  # bit of a zip's flags


@dataclass
class Allowance:
    """What may be unpacked of an archive of so many bytes."""

    location: str
    packed_bytes: int
    num_bytes: int = 0

    def take(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes
        if self.num_bytes > max(_UNPACKED_FREELY, _MOST_TIMES * self.packed_bytes):
            problem = f"it unpacks to more than {_MOST_TIMES} times its {self.packed_bytes:,} bytes, as no speech does."
            raise SourceError(self.location, problem, "Do not unpack it either, unless you know who made it.")


@dataclass(frozen=True)
class Member:
    """A file in an archive."""

    name: str  # as the archive spells it
    path: str  # where it would lie, with slashes
    num_bytes: int
    open: Callable[[], IO[bytes]]


@contextmanager
def open_members(location: str) -> Iterator[Iterator[Member | Finding]]:
    """The members of a plain tar or a zip, one after the other; each may be read until the next one is asked for."""
    content = open_bytes(location)
    try:
        stream = io.BufferedReader(Stream(content), 1 << 16)
        is_zip = content.read_at(0, 2) == b"PK"
        yield _of_zip(location, stream, content.size) if is_zip else _of_tar(location, stream)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError) as error:
        problem = f"the archive is damaged or cut short: {str(error).rstrip('.')}."
        raise SourceError(location, problem, "Copy or download it again.") from error
    finally:
        content.close()


def _of_zip(location: str, stream: IO[bytes], num_bytes: int) -> Iterator[Member | Finding]:
    with zipfile.ZipFile(stream) as archive:
        entries = archive.infolist()
        allowance = Allowance(location, num_bytes)
        for entry in entries:
            allowance.take(entry.file_size)
        for entry in entries:
            if entry.is_dir() or is_litter(entry.filename):
                continue
            if entry.flag_bits & _ENCRYPTED:
                action = "Unpack it with its password, and give the folder."
                raise SourceError(location, f"it is protected by a password: '{entry.filename}'.", action)
            if is_audio(entry.filename) and entry.compress_type not in _SEEKABLE:
                problem = f"'{entry.filename}' is packed by a method that recordings cannot be read from."
                raise SourceError(location, problem, "Unpack it and give the folder, or pack it with: zip -0 -r")
            path = safe_path(_as_utf8(entry).replace("\\", "/"))
            if (entry.external_attr >> 16) & 0o170000 == 0o120000:
                yield left_out(location, entry.filename, "is a link, which is not followed")
            elif path is None:
                yield _unsafe(location, entry.filename)
            else:
                yield Member(entry.filename, path, entry.file_size, partial(archive.open, entry))


def _of_tar(location: str, stream: IO[bytes]) -> Iterator[Member | Finding]:
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        while (entry := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # there may be 10^6 of them
            if entry.isdir() or is_litter(entry.name):
                continue
            path = safe_path(entry.name)
            if path is None:
                yield _unsafe(location, entry.name)
            elif entry.isreg() and not entry.issparse():
                yield Member(entry.name.removeprefix("./"), path, entry.size, partial(_reader, archive, entry))
            elif entry.islnk() and is_audio(entry.name):  # the same bytes under two names
                yield Member(entry.name.removeprefix("./"), path, 0, io.BytesIO)
            else:
                what = "a link, which is not followed" if entry.issym() or entry.islnk() else "no ordinary file"
                yield left_out(location, entry.name, f"is {what}")
        stream.seek(archive.offset)
        if stream.read(_TAR_BLOCK) != bytes(_TAR_BLOCK):
            raise tarfile.ReadError("its end is missing")


def _reader(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    found = archive.extractfile(entry)
    assert found is not None
    return found


def safe_path(name: str) -> str | None:
    """The path below wherever the archive is unpacked, or None for one that leads out of it."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return None if ".." in parts or "\0" in name or not parts else "/".join(parts)


def _as_utf8(entry: zipfile.ZipInfo) -> str:
    """Packers of macOS write UTF-8 without saying so; the archive is then read as if it were of DOS."""
    if entry.filename.isascii() or entry.flag_bits & 0x800:
        return entry.filename
    try:
        return entry.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return entry.filename


def _unsafe(location: str, name: str) -> Finding:
    problem = f"its member '{name}' would lie outside of the archive."
    action = "Look who made it; members are named from the archive's own folder on."
    return Finding(rule="unsafe-member", place=location, problem=problem, action=action)


def left_out(location: str, name: str, why: str) -> Finding:
    """A member that is not read, and why."""
    problem = f"its member '{name}' {why}; it is left out."
    action = "Nothing needs to be done, unless it is needed: then unpack the archive and give the folder."
    return Finding(rule="skipped-member", place=location, problem=problem, action=action, is_error=False)
