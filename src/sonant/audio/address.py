"""Where a recording lies: a file, or a place inside a container, written as one string.

    talks/a.flac                     a file
    shard.tar#a.flac                 a member of a tar
    raw.ark#1234                     the bytes at an offset of a Kaldi archive
    part.parquet#17/audio            a row and column of a Parquet file
    train/0#17/input_values          a row and column of a dataset saved to disk
    talks.zip#a.flac                 a stored (uncompressed) member of a zip

A `#` that belongs to the file's own name is written `%23`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sonant.base import storage

_ESCAPED = re.compile("%((?:25)*)23")  # what a # is written as, or what stood there already, once more escaped


@dataclass(frozen=True)
class Address:
    """A location, and the member inside it when the location is a container."""

    location: str
    member: str | None = None

    @classmethod
    def parse(cls, text: str) -> Address:
        location, found, member = text.partition("#")
        location = _ESCAPED.sub(lambda mark: f"%{mark[1][2:]}23" if mark[1] else "#", location)
        return cls(location, member if found else None)

    def __str__(self) -> str:
        location = _ESCAPED.sub(lambda mark: f"%25{mark[1]}23", self.location).replace("#", "%23")
        return location if self.member is None else f"{location}#{self.member}"

    def below(self, folder: str) -> Address:
        """The same address seen from outside the corpus folder that it is relative to."""
        return Address(storage.join(folder, self.location), self.member)
