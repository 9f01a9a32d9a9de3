"""Archives: a zip or tar, local or remote, holding any layout that the other sources know.

talks.zip                          recordings are addressed inside it, nothing is unpacked
https://host/dev-clean.tar.gz      compressed tar cannot be read by seeking: one plain copy is kept in the cache
talks.zip#part/two                 a folder of it
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import ClassVar

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import AbsentError, SonantError, SourceError
from sonant.corpus.sources.annotations import split_spec
from sonant.corpus.sources.archives.copies import readable_archive
from sonant.corpus.sources.archives.laying import Laid, is_archive
from sonant.corpus.sources.locate import entries
from sonant.corpus.sources.naming import split_called
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.utterance import Finding, Utterance


class ArchiveSource:
    """What lies in an archive, read as what it is."""

    name: ClassVar[str] = "archive"
    uses: ClassVar[frozenset[str]] = frozenset(field.name for field in fields(SourceOptions)) - {"trust_remote_code"}

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        return not names and is_archive(location.partition("#")[0])

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options
        found = Address.parse(location)
        self._archive, self._inside = found.location, found.member or ""

    def rows(self) -> Iterator[Utterance | Finding]:
        archive = readable_archive(self._archive)
        if archive != self._archive:
            yield _kept(self._archive, archive)
        with tempfile.TemporaryDirectory(prefix="sonant-") as folder:
            # One folder deep: what sources look for above their own is then not among other people's files.
            laid = Laid(archive, os.path.join(os.path.realpath(folder), "inside"))
            yield from laid.lay(self._archive)
            yield from self._read(laid)

    def vocabulary(self) -> list[str] | None:
        return None

    def _read(self, laid: Laid) -> Iterator[Utterance | Finding]:
        from sonant.corpus.sources.registry import open_source  # which knows this one too

        try:
            options = replace(self.options, format=self._format, annotations=tuple(self._annotations(laid)))
            for row in open_source(self._root(laid), options).rows():
                yield self._outside(row, laid)
        except SonantError as error:
            said = (self._told(text, laid) for text in (error.where, error.problem, error.action))
            raise type(error)(*said) from error

    @property
    def _format(self) -> str:
        return "" if self.options.format == self.name else self.options.format

    def _root(self, laid: Laid) -> str:
        """The folder that was asked for, or the first that holds more than another folder."""
        if self._inside:
            folder = os.path.normpath(os.path.join(laid.folder, self._inside))
            if not folder.startswith(laid.folder) or not os.path.isdir(folder):
                raise AbsentError(self.location, "the archive has no such folder.", "Name a folder of it behind the #.")
            return folder
        folder = laid.folder
        while len(names := entries(folder)) == 1 and names[0].endswith("/"):
            below = os.path.join(folder, names[0].rstrip("/"))
            if split_called(names[0].rstrip("/")) and _tells_nothing(below):
                break  # the folder is what tells the split
            folder = below
        return folder

    def _annotations(self, laid: Laid) -> Iterator[str]:
        """Tables of annotations lie in the archive, or beside it."""
        for spec in self.options.annotations:
            path, _ = split_spec(spec)
            beside = storage.join(storage.parent(self._archive), path)
            is_inside = os.path.exists(os.path.join(self._root(laid), path))
            yield beside + spec[len(path) :] if not is_inside and storage.exists(beside) else spec

    def _outside(self, row: Utterance | Finding, laid: Laid) -> Utterance | Finding:
        """The same row, told as who sees the archive from outside."""
        place = self._told(row.place, laid)
        if isinstance(row, Finding):
            problem, action = self._told(row.problem, laid), self._told(row.action, laid)
            return replace(row, place=place, problem=problem, action=action)
        if row.audio is None or storage.is_remote(row.audio):
            return replace(row, place=place)
        address = Address.parse(row.audio)
        location = os.path.normpath(os.path.abspath(address.location))
        if not location.startswith(laid.folder + os.sep):
            return row if self._is_asked_for(location) else _leads_out(row, place, location)
        path = location[len(laid.folder) + 1 :]
        if address.member is not None:
            problem = f"its recordings lie in a container in the archive, '{path}', where they cannot be reached."
            raise SourceError(self._archive, problem, "Unpack the archive, and give the folder.")
        return replace(row, place=place, audio=laid.address(path))

    def _is_asked_for(self, location: str) -> bool:
        wanted = self.options.audio
        return bool(wanted) and location.startswith(os.path.abspath(wanted) + os.sep)

    def _told(self, text: str, laid: Laid) -> str:
        """Paths of the folder in which the archive was laid out, as paths of the archive."""
        return text.replace(f"{laid.folder}/", f"{self._archive}#").replace(laid.folder, self._archive)


def _tells_nothing(folder: str) -> bool:
    """Whether recordings lie there with nothing but their folders to tell what they are."""
    from sonant.corpus.sources.registry import recognise

    try:
        return recognise(folder) == "folder"
    except SourceError:
        return True


def _leads_out(row: Utterance, place: str, location: str) -> Finding:
    problem = f"'{row.id}' names a recording outside of the archive: {location}."
    action = "Put the recording into the archive, or say with --audio that the recordings lie elsewhere."
    return Finding(rule="unsafe-member", place=place, problem=problem, action=action, id=row.id)


def _kept(archive: str, copy: str) -> Finding:
    return Finding(
        rule="kept-copy",
        place=archive,
        problem=f"recordings in it cannot be reached by seeking; the corpus reads a plain copy, {copy}.",
        action="Keep the copy, or prepare with --pack and remove it.",
        is_error=False,
    )
