"""Files wherever they lie: local folders and gs://, s3://, https:// through fsspec, under one set of functions.

A location is a local path or a URI. Everything that matters is written whole or not at all.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sonant.base.errors import DependencyError, SonantError, StorageError

_EXTRAS = {"gs": "gcsfs", "gcs": "gcsfs", "s3": "s3fs", "http": "aiohttp", "https": "aiohttp"}


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


def file_system(location: str) -> tuple[Any, str]:
    """The fsspec file system behind a URI and the path inside it."""
    import fsspec

    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # each probe stalls for 60 s otherwise
    scheme = location.partition("://")[0]
    try:
        system, path = fsspec.core.url_to_fs(location)
        return system, path
    except (ImportError, ValueError) as error:
        if scheme not in _EXTRAS:
            raise StorageError(
                location, f"the scheme '{scheme}' is not known.", "Use gs://, s3:// or https://."
            ) from error
        raise DependencyError.for_extra(_EXTRAS[scheme], "remote", f"reading {scheme}://") from error


@contextmanager
def storage_errors(location: str) -> Iterator[None]:
    """Turns what the system says of a location into a sentence that helps."""
    try:
        yield
    except SonantError:
        raise
    except FileNotFoundError as error:
        raise StorageError(location, "nothing is there.", "Check the path; names are case-sensitive.") from error
    except PermissionError as error:
        raise StorageError(
            location, "access is denied.", "Give yourself the right, or choose another place."
        ) from error
    except OSError as error:
        full = error.errno == 28
        problem = "the disk is full." if full else f"the storage answered: {error}."
        action = (
            "Free some space and run the same command again; nothing written before is lost."
            if full
            else "Check the place and try again."
        )
        raise StorageError(location, problem, action) from error


@contextmanager
def open_binary(location: str) -> Iterator[IO[bytes]]:
    """A seekable stream of bytes, read lazily where the storage allows it."""
    with storage_errors(location):
        if not is_remote(location):
            with open(location, "rb") as file:
                yield file
            return
        system, path = file_system(location)
        with system.open(path, "rb") as file:
            yield file


def read_bytes(location: str) -> bytes:
    with open_binary(location) as file:
        return file.read()


def exists(location: str) -> bool:
    if not is_remote(location):
        return os.path.exists(location)
    with storage_errors(location):
        system, path = file_system(location)
        return bool(system.exists(path))


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
            yield from (system.unstrip_protocol(name) for name in sorted(system.find(path)))
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
            or info.get("mtime")
        )
        return int(info.get("size") or 0), str(mark)


def write_whole(location: str, write: Callable[[IO[bytes]], object]) -> None:
    """Writes under a temporary name, syncs and renames, so that a reader sees the old file or the new one."""
    with storage_errors(location):
        if is_remote(location):
            system, path = file_system(location)
            with system.open(path, "wb") as remote:  # object stores publish on close
                write(remote)
            return
        _write_local(Path(location), write)


def write_text(location: str, text: str) -> None:
    write_whole(location, lambda file: file.write(text.encode("utf-8")))


def _write_local(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
