"""Finds the recording that somebody's table means, although its name is seldom spelt as the file is.

    finder = AudioFinder("/data/set")                     # the folder that relative names start from
    found = finder.find("C:\\\\data\\\\set\\\\X.wav", place="recordings.csv:42", id="x")
    if isinstance(found, Finding): yield found            # rule "missing-audio" or "ambiguous-audio"
    else: audio = found                                   # an audio address, ready for `Utterance.audio`

A name is looked for as it is written, below the folder, the one above it and those that the caller adds; then in the
same place with another Unicode form (NFC, NFD), case, extension or none; then anywhere below the folder where the last
parts of the path agree, so that absolute and Windows paths of another machine are understood. Folders are listed once
each, never a file asked for by itself: 10^5 rows are quick, in buckets too. Only https:// addresses are taken on trust.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from urllib.parse import unquote, urlparse

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.corpus.utterance import Finding

AUDIO_EXTENSIONS = frozenset(
    (
        ".wav .wave .flac .ogg .oga .opus .mp3 .m4a .mp4 .webm .aac .aif .aiff .aifc .au .snd .caf .sph .nist .w64 "
        ".rf64 .mka .wma .amr"
    ).split()
)
_Listing = dict[str, list[str]]  # folded stem -> file names, or paths below the folder


def is_audio(location: str) -> bool:
    """True for names of recordings."""
    return extension(location) in AUDIO_EXTENSIONS and not is_litter(location)


def is_litter(location: str) -> bool:
    """True for what macOS and others leave beside the files: `._x.wav`, `__MACOSX/x.wav`."""
    return basename(location).startswith(".") or "__MACOSX" in location


def extension(location: str) -> str:
    """The extension in lower case, with its dot."""
    return os.path.splitext(basename(location))[1].casefold()


def basename(location: str) -> str:
    """The last part of a path, whichever slash it is written with."""
    return location.rstrip("\\/").replace("\\", "/").rpartition("/")[2]


def stem(location: str) -> str:
    """The file's name without its audio extension; other dots belong to the name."""
    name = basename(location)
    head, extension = os.path.splitext(name)
    return head if extension.casefold() in AUDIO_EXTENSIONS else name


def list_audio(folder: str) -> Iterator[str]:
    """Every recording below a folder, as full locations, in sorted order."""
    return (location for location in storage.list_files(folder) if is_audio(location))


def entries(folder: str) -> list[str]:
    """The names directly below a folder, those of folders ending in "/"; none where there is no such folder."""
    with storage.storage_errors(folder):
        try:
            if not storage.is_remote(folder):
                with os.scandir(folder) as found:
                    return sorted(entry.name + "/" * entry.is_dir() for entry in found)
            if _is_web(folder):
                return []  # nothing there tells what a folder holds
            system, path = storage.file_system(folder)
            # A file, and the marker of an empty folder, are listed as themselves.
            listed = [one for one in system.ls(path, detail=True) if one["name"].strip("/") != path.strip("/")]
            return sorted(basename(one["name"]) + "/" * (one["type"] == "directory") for one in listed)
        except (FileNotFoundError, NotADirectoryError, ValueError):  # a zero byte in a name is a ValueError
            return []


def glimpse(location: str, names: Sequence[str], count: int = 500) -> Iterator[str]:
    """The first files below a folder, as paths: enough to recognise a layout, also of 10^6 files."""
    yield from (name for name in names if not name.endswith("/"))
    if storage.is_remote(location):
        return
    for folder in [name for name in names if name.endswith("/")][:8]:
        below = storage.list_files(storage.join(location, folder))
        for path in islice(below, count):
            yield os.path.relpath(path, location)


def folders_above(folder: str, count: int = 3) -> list[str]:
    """Where else relative paths may start: manifests are often written from a folder above, or from here."""
    above: list[str] = []
    is_remote = storage.is_remote(folder)
    while len(above) < count and storage.is_remote(folder := storage.parent(folder)) == is_remote:
        above.append(folder)
    return above if is_remote else [*above, os.getcwd()]


def audio_folder(base: str, wanted: str) -> str:
    """The folder that relative audio paths start from: the one asked for, seen from the source or from here."""
    if not wanted:
        return base
    for folder in (storage.join(base, wanted), wanted):
        if _is_web(folder) or storage.is_folder(folder):
            return folder if storage.is_remote(folder) else os.path.normpath(folder)
    action = "Give --audio as seen from the source or from here."
    raise SourceError(wanted, "there is no such folder of recordings.", action)


class AudioFinder:
    """Turns names of recordings into audio addresses."""

    def __init__(self, folder: str, also: Sequence[str] = ()) -> None:
        self.folder = folder
        self._bases = tuple(dict.fromkeys((folder, storage.parent(folder), *also)))
        self._folders: dict[str, _Listing] = {}
        self._tree: _Listing | None = None

    def find(self, name: str, *, place: str, id: str = "") -> str | Finding:
        """The address of the recording, or what is wrong with its name."""
        name = name.strip()
        if name.startswith("file://"):
            name = unquote(urlparse(name).path)
        if _is_web(name):
            return name
        if _is_web(self.folder) and not (storage.is_remote(name) or name.startswith("/")):
            return storage.join(self.folder, name)
        found = self._candidates(name)
        if not found and "#" in name:  # a member of a container, unless a file is really called so
            address = Address.parse(name)
            found = self._candidates(address.location)
            if len(found) == 1:
                return str(Address(found[0], address.member))
        if len(found) == 1:
            return str(Address(found[0]))
        return _not_one(name, self.folder, found, place, id)

    def find_container(self, name: str, *, place: str, id: str = "") -> str | Finding:
        """The address of a tar or archive; one that was moved is known by its name alone, beside the manifest."""
        found = self.find(name, place=place, id=id)
        if isinstance(found, Finding):
            moved = self.find(basename(name), place=place, id=id)
            return found if isinstance(moved, Finding) else moved
        return found

    def _candidates(self, name: str) -> list[str]:
        if basename(name) in ("", ".", ".."):
            return []
        for base in self._bases:
            found = self._beside(storage.join(base, name.replace("\\", "/")))
            if found:
                return found
        return self._anywhere(name)

    def _beside(self, location: str) -> list[str]:
        """The files of that folder which the name may mean, best spelling first and alone."""
        folder, wanted = storage.parent(location), location.rpartition("/")[2]
        if folder not in self._folders:
            self._folders[folder] = _by_stem(_names_in(folder))
        named = self._folders[folder].get(_folded(stem(wanted)), [])
        return [storage.join(folder, one) for one in _most_alike(wanted, named)]

    def _anywhere(self, name: str) -> list[str]:
        """The files below the folder whose path ends as the name does; for paths of elsewhere, as long as possible."""
        if self._tree is None:
            start = len(self.folder.rstrip("/")) + 1
            self._tree = _by_stem(location[start:] for location in list_audio(self.folder))
        parts = [part for part in re.split(r"[\\/]+", name) if part not in ("", ".", "..")]
        is_elsewhere = ".." in name or name.startswith(("/", "\\")) or storage.is_remote(name) or parts[0].endswith(":")
        shared = {path: _parts_shared(path, parts) for path in self._tree.get(_folded(stem(name)), [])}
        needed = max(shared.values(), default=0) if is_elsewhere else len(parts) - 1
        paths = [path for path, count in shared.items() if count >= needed]
        return [storage.join(self.folder, path) for path in _most_alike(basename(name), paths)]


def _names_in(folder: str) -> list[str]:
    """The files of one folder; none where there is no such folder."""
    return [name for name in entries(folder) if not name.endswith("/")]


def _is_web(location: str) -> bool:
    return location.startswith(("http://", "https://"))


def _by_stem(names: Iterable[str]) -> _Listing:
    listing: _Listing = {}
    for name in names:
        listing.setdefault(_folded(stem(name)), []).append(name)
    return listing


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _most_alike(wanted: str, names: list[str]) -> list[str]:
    """Those spelt exactly so, else so but for Unicode form, else for case, else audio of any extension."""
    if exact := [name for name in names if basename(name) == wanted]:
        return exact
    composed = unicodedata.normalize("NFC", wanted)
    for same in (
        [name for name in names if unicodedata.normalize("NFC", basename(name)) == composed],
        [name for name in names if _folded(basename(name)) == _folded(wanted)],
        [name for name in names if is_audio(name) and unicodedata.normalize("NFC", stem(name)) == stem(composed)],
    ):
        if same:
            return same
    return [name for name in names if is_audio(name)]


def _parts_shared(path: str, parts: list[str]) -> int:
    """How many folders before the file's name agree."""
    count = 0
    for have, want in zip(reversed(path.split("/")[:-1]), reversed(parts[:-1]), strict=False):
        if _folded(have) != _folded(want):
            break
        count += 1
    return count


def _not_one(name: str, folder: str, found: list[str], place: str, id: str) -> Finding:
    if not found:
        return Finding(
            rule="missing-audio",
            place=place,
            problem=f"the recording '{name}' is neither at that path nor below {folder}.",
            action="Put it there, or say with --audio which folder the paths start from.",
            id=id,
        )
    shown = ", ".join(f"'{one}'" for one in found[:3]) + (" …" if len(found) > 3 else "")
    return Finding(
        rule="ambiguous-audio",
        place=place,
        problem=f"the recording '{name}' may be any of {len(found)} files: {shown}.",
        action="Write the path with folder and extension, or remove the others.",
        id=id,
    )
