"""Archives that cannot be read where they lie: those of tar with compression, and those of a server without ranges.

They are copied once, without compression, into the user's cache, whole or not at all; the same archive is not copied
again. Everything else is read in place.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import zlib
from typing import IO, Any

from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.base.randomness import stable_hash
from sonant.base.remote import gives_ranges
from sonant.corpus.sources.archives.members import Allowance
from sonant.corpus.sources.locate import basename

_BLOCK = 1 << 20
_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_ZSTD, _SEVEN, _RAR = b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!"


def readable_archive(location: str) -> str:
    """The archive itself, or its copy where only that can be read by seeking."""
    with storage.open_binary(location) as file:
        head = file.read(512)
        opener = next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)
        if opener is None:
            _refuse_unknown(location, head)
            if gives_ranges(location):
                return location
    size, changed = storage.fingerprint(location)
    place = location if storage.is_remote(location) else os.path.realpath(location)
    copy = os.path.join(_cache(), f"{stable_hash(place, size, changed):016x}-{_bare(location)}")
    if not os.path.exists(copy):
        storage.write_whole(copy, lambda target: _copy(location, opener, Allowance(location, size), target))
    return copy


def _copy(location: str, opener: Any, allowance: Allowance, target: IO[bytes]) -> None:
    with storage.open_binary(location) as file:
        if opener is None:
            shutil.copyfileobj(file, target, _BLOCK)
            return
        try:
            with opener(file) as unpacked:
                while block := unpacked.read(_BLOCK):
                    allowance.take(len(block))
                    target.write(block)
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            problem = f"the archive is damaged or cut short: {str(error).rstrip('.')}."
            raise SourceError(location, problem, "Copy or download it again.") from error


def _refuse_unknown(location: str, head: bytes) -> None:
    if head[:2] == b"PK" or head[257:262] == b"ustar" or (head and not any(head)):  # an empty tar is all zero
        return
    if head.startswith((_ZSTD, _SEVEN, _RAR)):
        raise SourceError(location, "archives of this kind are not read.", "Unpack it, and give the folder.")
    found = "it is empty" if not head else f"it begins with {head[:16]!r}"
    raise SourceError(location, f"this is no archive: {found}.", "Download it again, and look at what came.")


def _cache() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "sonant", "archives")


def _bare(location: str) -> str:
    """The name that the plain archive would have."""
    name = basename(location.partition("?")[0])
    for packed, plain in (
        (".tgz", ".tar"),
        (".tbz2", ".tar"),
        (".txz", ".tar"),
        (".gz", ""),
        (".bz2", ""),
        (".xz", ""),
    ):
        if name.casefold().endswith(packed):
            return name[: -len(packed)] + plain
    return name
