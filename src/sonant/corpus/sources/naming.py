"""What an utterance is called whose source gives it no name: the path of its recording, numbered if need be."""

from __future__ import annotations

import os
import re

from sonant.audio.address import Address
from sonant.base import storage
from sonant.corpus.sources.locate import AUDIO_EXTENSIONS, basename, extension

SPLITS = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "development": "dev",
    "test": "test",
    "testing": "test",
}
WHOLE_FOLDER = "waveform"  # of `<id>/waveform.wav`: the folder bears the name


def path_id(audio: str, folder: str) -> str:
    """The path of a recording below a folder without its extension; of one that lies elsewhere, its name."""
    address = Address.parse(audio)
    start = folder.rstrip("/") + "/"
    below = address.location.startswith(start)
    path = _bare(address.location[len(start) :] if below else basename(address.location.partition("?")[0]))
    if basename(path) == WHOLE_FOLDER and "/" in path:
        path = path.rpartition("/")[0]
    return path if address.member is None else f"{path}/{_bare(address.member)}"


def numbered(id: str, number: int) -> str:
    """The name of the n-th utterance of a recording, counted from 1."""
    return f"{id}-{number:04}"


def split_called(name: str) -> str | None:
    """The split that a folder or file is named after: `train`, `train-clean-100` and `train_2` are one."""
    return SPLITS.get(name.casefold()) or SPLITS.get(re.split(r"[-_.\d]", name.casefold())[0])


def split_of_folder(location: str) -> str | None:
    """The split that a data folder is named after."""
    return split_called(basename(location if storage.is_remote(location) else os.path.abspath(location)))


def split_in(name: str) -> str | None:
    """The split that any word of a file's name tells: `manifest_train.json`, `cuts_dev-clean.jsonl.gz`."""
    return next((SPLITS[word] for word in re.split(r"[\W_]", name.casefold()) if word in SPLITS), None)


def in_natural_order(path: str) -> list[tuple[bool, int, str]]:
    """A key for sorting in which numbers in names count as numbers: part 10 comes behind part 2."""
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", path)]


def _bare(path: str) -> str:
    path = path.replace("\\", "/")
    return path[: -len(extension(path))] if extension(path) in AUDIO_EXTENSIONS else path
