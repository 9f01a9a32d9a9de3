"""Recordings inside containers: members of tar and zip, Kaldi archives, and (in `tables`) rows of datasets.

The index of a container is read once per process and kept as long as the file stays the same. A member is read where
it lies; only one that a zip holds deflated is unpacked, in memory. What a container is, its first bytes tell.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from sonant.audio.address import Address
from sonant.audio.decoders.arrays import ArrayDecoder
from sonant.audio.streams import Bytes, Memory, Stream, Window, open_bytes
from sonant.audio.tables import open_row
from sonant.base import storage
from sonant.base.errors import AudioError
from sonant.base.names import nearest

LARGEST_UNPACKED = 1 << 30  # bytes of a deflated member of a zip, which must fit into memory
_STORED, _DEFLATED = 0, 8
_ZIP_MEMBER = b"PK\x03\x04"
_CONTAINERS_KEPT = 256  # their indices; some 200 bytes for each member
_MAGIC_BYTES = 512
_NO_SIZE = 0x7FFF_0000  # from here on, and 0: what is written by those who do not know it

Entry = TypeVar("Entry")


def open_member(address: Address, where: str, sample_rate: int | None) -> Bytes | ArrayDecoder:
    """The bytes of one recording in a container, or its samples where they lie there as numbers."""
    assert address.member is not None
    if not storage.is_remote(address.location) and os.path.isdir(address.location):
        return open_row(address, where, sample_rate)
    outer = open_bytes(address.location)
    try:
        head = outer.read_at(0, _MAGIC_BYTES)
        if head[:4] == b"PAR1" or head[:6] == b"ARROW1" or head[:4] == b"\xff\xff\xff\xff":
            outer.close()
            return open_row(address, where, sample_rate)
        if head[:4] in (_ZIP_MEMBER, b"PK\x05\x06"):
            return _zip_member(outer, address.location, address.member, where)
        if head[257:262] == b"ustar" or address.location.casefold().endswith(".tar"):
            return _tar_member(outer, address.location, address.member, where)
        if head[:2] == b"\x1f\x8b":
            problem = "this archive is compressed with gzip, so that its members cannot be reached by seeking."
            raise AudioError(where, problem, "Unpack it once: gunzip ARCHIVE")
        return _ark_entry(outer, address.member, where)
    except BaseException:
        outer.close()
        raise


def _tar_member(outer: Bytes, location: str, member: str, where: str) -> Bytes:
    index = _tar_index(location, outer.mark)
    offset, size = _member_of(index, member, where)
    if offset + size > outer.size:
        raise AudioError(where, "the archive ends inside this member: it was cut short.", "Copy the archive again.")
    return Window(outer, offset, size)


@lru_cache(maxsize=_CONTAINERS_KEPT)
def _tar_index(location: str, mark: object) -> dict[str, tuple[int, int]]:
    """Offset and size of every file in a tar, by name without a leading `./`."""
    import tarfile

    index: dict[str, tuple[int, int]] = {}
    content = open_bytes(location)
    try:
        with tarfile.open(fileobj=Stream(content), mode="r:") as archive:
            for entry in archive:
                if entry.isreg():
                    index[entry.name.removeprefix("./")] = (entry.offset_data, entry.size)
                elif entry.islnk() and (target := index.get(entry.linkname.removeprefix("./"))):
                    index[entry.name.removeprefix("./")] = target
    except tarfile.TarError as error:
        if not index:
            raise AudioError(location, f"this tar archive cannot be read: {error}.", "Copy it again.") from error
    finally:
        content.close()
    return index


def _member_of(index: dict[str, Entry], member: str, where: str) -> Entry:
    entry = index.get(member.removeprefix("./"))
    if entry is None:
        near = nearest(member, index) if len(index) < 10_000 else None
        action = f"Did you mean '{near}'?" if near else "Correct the name; names are case-sensitive."
        raise AudioError(where, f"the archive has no member '{member}' among its {len(index)} files.", action)
    return entry


def _zip_member(outer: Bytes, location: str, member: str, where: str) -> Bytes:
    entry = _member_of(_zip_index(location, outer.mark), member, where)
    if entry.is_encrypted:
        raise AudioError(where, "this member is encrypted.", "Unpack the archive with its password.")
    header = outer.read_at(entry.header_offset, 30)
    if len(header) < 30 or not header.startswith(_ZIP_MEMBER):
        raise AudioError(where, "the archive is damaged: this member is not where it should be.", "Copy it again.")
    name_bytes, extra_bytes = struct.unpack("<HH", header[26:])
    packed = Window(outer, entry.header_offset + 30 + name_bytes + extra_bytes, entry.packed_bytes)
    if packed.size < entry.packed_bytes:
        raise AudioError(where, "the archive ends inside this member: it was cut short.", "Copy the archive again.")
    if entry.method == _STORED:
        return packed
    if entry.method != _DEFLATED:
        raise AudioError(where, "this member is packed by a method that is not read.", "Pack it with: zip -0")
    if entry.num_bytes > LARGEST_UNPACKED:
        limit = LARGEST_UNPACKED >> 20
        problem = f"this member unpacks to {entry.num_bytes >> 20} MiB; up to {limit} MiB are unpacked in memory."
        raise AudioError(where, problem, "Pack it without compression (zip -0), or unpack the archive.")
    return _inflated(packed, entry, where)


@dataclass(frozen=True)
class _ZipEntry:
    header_offset: int
    packed_bytes: int
    num_bytes: int
    method: int
    is_encrypted: bool
    checksum: int


@lru_cache(maxsize=_CONTAINERS_KEPT)
def _zip_index(location: str, mark: object) -> dict[str, _ZipEntry]:
    import zipfile

    content = open_bytes(location)
    try:
        with zipfile.ZipFile(Stream(content)) as archive:
            return {
                entry.filename: _ZipEntry(
                    entry.header_offset,
                    entry.compress_size,
                    entry.file_size,
                    entry.compress_type,
                    bool(entry.flag_bits & 1),
                    entry.CRC,
                )
                for entry in archive.infolist()
            }
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, struct.error) as error:
        raise AudioError(location, f"this zip archive cannot be read: {error}.", "Copy it again.") from error
    finally:
        content.close()


def _inflated(packed: Bytes, entry: _ZipEntry, where: str) -> Memory:
    try:
        content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed.read_at(0, packed.size), entry.num_bytes + 1)
    except zlib.error as error:
        raise AudioError(where, f"this member is damaged: {error}.", "Copy the archive again.") from error
    if zlib.crc32(content) != entry.checksum:
        raise AudioError(where, "this member is damaged: its checksum is another.", "Copy the archive again.")
    packed.close()
    return Memory(content)


def _ark_entry(outer: Bytes, member: str, where: str) -> Bytes:
    """A recording in a Kaldi archive, at the offset that scp files tell: behind its key."""
    if not member.isdecimal():
        problem = f"this is no container that is known here, so it has no member '{member}'."
        raise AudioError(where, problem, "Name a member of a tar, zip, Parquet file, Kaldi archive or saved dataset.")
    offset = int(member)
    if offset >= outer.size:
        raise AudioError(where, f"the archive ends at {outer.size}.", "Use the scp file of this archive.")
    head = outer.read_at(offset, 14)
    if head[:2] == b"\0B" and head[2:6] in (b"RIFF", b"RIFX", b"RF64"):  # Kaldi's mark of binary data
        offset, head = offset + 2, head[2:]
    size = outer.size - offset
    if head[:4] in (b"RIFF", b"RIFX") and len(head) >= 8:
        (said,) = struct.unpack("<I" if head[:4] == b"RIFF" else ">I", head[4:8])
        if said == 0 or said >= _NO_SIZE:
            problem = "this recording does not tell its size, so nothing tells it from the next one in the archive."
            raise AudioError(where, problem, "Write the archive again with wav-copy.")
        size = said + 8
    return Window(outer, offset, size)
