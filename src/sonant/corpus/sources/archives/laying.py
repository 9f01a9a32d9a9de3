"""Lays an archive out in a folder as far as sources look at it: texts as they are, recordings as empty files.

Sources never decode, so that they find in it what they would find in the unpacked archive.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator

from sonant.audio.address import Address
from sonant.base.errors import SourceError
from sonant.corpus.sources.archives.members import Member, left_out, open_members
from sonant.corpus.sources.locate import basename, extension, is_audio
from sonant.corpus.utterance import Finding

EXTENSIONS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_LARGEST_TEXT = 1 << 30  # bytes of anything that is no recording
_CANNOT_LIE = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)


def is_archive(location: str) -> bool:
    """True for names of archives."""
    return basename(location.partition("?")[0]).casefold().endswith(EXTENSIONS)


class Laid:
    """An archive laid out below a folder."""

    def __init__(self, location: str, folder: str) -> None:
        self.location, self.folder = location, folder
        self._others: dict[str, str] = {}  # members that are not called as they lie

    def lay(self, place: str) -> Iterator[Finding]:
        """Does it; gives what was left out, told of `place`."""
        num_laid, nested = 0, ""
        with open_members(self.location) as members:
            for member in members:
                if isinstance(member, Finding):
                    yield member
                elif is_archive(member.path):
                    nested = member.path
                    yield left_out(place, member.path, "is an archive itself")
                elif not is_audio(member.path) and member.num_bytes > _LARGEST_TEXT:
                    yield left_out(place, member.path, "is too large for a text and no recording")
                elif fault := self._put(member, place):
                    yield fault
                else:
                    num_laid += 1
        if not num_laid:
            found = f"it holds nothing but other archives, among them '{nested}'" if nested else "it holds no file"
            action = "Unpack it, and give what lies in it." if nested else "Look whether this is the right one."
            raise SourceError(place, f"{found}.", action)

    def _put(self, member: Member, place: str) -> Finding | None:
        path = os.path.join(self.folder, member.path)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as target:
                if not is_audio(path) and extension(path) != ".ark":
                    with member.open() as content:
                        shutil.copyfileobj(content, target)
        except OSError as error:
            if error.errno not in _CANNOT_LIE:
                raise
            return left_out(place, member.path, f"cannot lie beside the others ({os.strerror(error.errno or 0)})")
        if member.name != member.path:
            self._others[member.path] = member.name
        return None

    def address(self, path: str) -> str:
        """The address of a recording that lies at a path below the folder."""
        return str(Address(self.location, self._others.get(path, path)))
