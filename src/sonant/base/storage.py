"""Files wherever they lie: local folders and gs://, s3://, https:// through fsspec, under one set of functions.

A location is a local path or a URI. Everything that matters is written whole or not at all.
"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sonant.base import remote
from sonant.base.errors import AbsentError, SonantError, StorageError
from sonant.base.remote import file_system

__all__ = [
    "exists",
    "file_system",
    "fingerprint",
    "is_folder",
    "is_remote",
    "join",
    "list_files",
    "open_binary",
    "parent",
    "read_bytes",
    "remove",
    "remove_unfinished",
    "storage_errors",
    "write_text",
    "write_whole",
]


def is_remote(location: str | os.PathLike[str]) -> bool:
    """True for `scheme://…`; a Windows drive (`C:\\…`) is not a scheme."""
    scheme, found, _ = str(location).partition("://")
    return bool(found) and len(scheme) > 1 and scheme.isalnum() and scheme != "file"


def join(folder: str, *names: str) -> str:
    """A location below a folder; an absolute or remote name stands for itself."""
    for name in names:
        if is_remote(name) or os.path.isabs(name):
            folder = name
        elif is_remote(folder):
            folder = folder.rstrip("/") + "/" + name.replace("\\", "/")
        else:
            folder = os.path.join(folder, name)
    return folder


def parent(location: str) -> str:
    """The folder that a location lies in."""
    return (
        location.rstrip("/").rpartition("/")[0] if is_remote(location) else os.path.dirname(os.path.abspath(location))
    )


@contextmanager
def storage_errors(location: str) -> Iterator[None]:
    """Turns what the system says of a location into a sentence that helps."""
    try:
        yield
    except SonantError:
        raise
    except Exception as error:
        if is_remote(location) and remote.is_of_storage(error):
            raise remote.meaning(location, error) from error
        if isinstance(error, OSError):
            raise _meaning(location, error) from error
        raise


def _meaning(location: str, error: OSError) -> StorageError:
    """What the operating system says of a local path, in words of ours."""
    if isinstance(error, FileNotFoundError):
        return AbsentError(location)
    if isinstance(error, PermissionError):
        return StorageError(location, "access is denied.", "Give yourself the right, or choose another place.")
    if error.errno == errno.ENOSPC:
        action = "Free some space and run the same command again; nothing written before is lost."
        return StorageError(location, "the disk is full.", action)
    return StorageError(location, f"the storage answered: {error}.", "Check the place and try again.")


@contextmanager
def open_binary(location: str) -> Iterator[IO[bytes]]:
    """A seekable stream of bytes, read lazily where the storage allows it."""
    with storage_errors(location):
        if not is_remote(location):
            with open(location, "rb") as file:
                yield file
            return
        with remote.open_seekable(location) as file:
            yield file


def read_bytes(location: str) -> bytes:
    with open_binary(location) as file:
        return file.read()


def exists(location: str) -> bool:
    if not is_remote(location):
        return os.path.exists(location)
    try:
        with storage_errors(location):  # `system.exists` says no where it should say that it cannot know
            system, path = file_system(location)
            system.info(path)
    except AbsentError:
        return False
    return True


def is_folder(location: str) -> bool:
    if not is_remote(location):
        return os.path.isdir(location)
    with storage_errors(location):
        system, path = file_system(location)
        return bool(system.isdir(path))


def list_files(folder: str) -> Iterator[str]:
    """Every file below a folder, as full locations, in sorted order, folders visited one after the other."""
    if is_remote(folder):
        with storage_errors(folder):
            system, path = file_system(folder)
            start = len(path.rstrip("/"))  # what stands before it is spelt as the caller spells it
            names = sorted(system.find(path))
            yield from (folder.rstrip("/") + name[start:] for name in names)
        if not names:
            exists(folder)  # an empty folder and a silent server look the same to `find`
        return
    for where, folders, names in os.walk(folder, followlinks=True):
        folders.sort()
        yield from (os.path.join(where, name) for name in sorted(names))


def fingerprint(location: str) -> tuple[int, str]:
    """Size and a mark that changes when the file does: what `prepare` compares before and after reading."""
    with storage_errors(location):
        if not is_remote(location):
            stat = os.stat(location)
            return stat.st_size, str(stat.st_mtime_ns)
        system, path = file_system(location)
        info = system.info(path)
        mark = (
            info.get("ETag")
            or info.get("etag")
            or info.get("generation")
            or info.get("LastModified")
            or info.get("Last-Modified")
            or info.get("mtime")
        )
        return int(info.get("size") or 0), str(mark)


def write_whole(location: str, write: Callable[[IO[bytes]], object]) -> None:
    """Writes under a temporary name, syncs and renames, so that a reader sees the old file or the new one."""
    with storage_errors(location):
        if is_remote(location):
            _write_remote(location, write)
            return
        _write_local(Path(location), write)


def write_text(location: str, text: str) -> None:
    write_whole(location, lambda file: file.write(text.encode("utf-8")))


def _write_remote(location: str, write: Callable[[IO[bytes]], object]) -> None:
    """Written here first and sent in one piece: a stream to a bucket publishes what it has even when writing fails."""
    system, path = file_system(location)
    if location.startswith("http"):
        raise StorageError(location, "this place can only be read.", "Write to a folder, gs:// or s3:// instead.")
    with tempfile.TemporaryDirectory(prefix="sonant-") as folder:
        temporary = os.path.join(folder, "whole")
        with open(temporary, "wb") as file:
            write(file)
        system.put_file(temporary, path)


def remove(location: str) -> None:
    """Removes a file."""
    with storage_errors(location):
        if is_remote(location):
            system, path = file_system(location)
            system.rm_file(path)
        else:
            os.unlink(location)


def remove_unfinished(folder: str) -> None:
    """Removes what a killed `write_whole` left in a local folder; for whoever is the only one to write there."""
    if not is_remote(folder):
        with storage_errors(folder):
            for left in Path(folder).glob(".*.????????.part"):
                left.unlink()


def _write_local(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.part"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less the umask, as any new file
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
