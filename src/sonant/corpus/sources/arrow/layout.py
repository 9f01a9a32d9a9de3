"""Finds the parts of a dataset, in order, with their splits.

name/state.json                      a dataset saved to disk
name/dataset_dict.json, name/train   several, one for each split
name/train/0, name/train/1 …         saved in shards, whose numbers are in order although 10 < 2 as text
name/data/train-00000-of-00007.parquet, name/train/0000.parquet, …-train-00000-of-00002.arrow   as on the hub
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.corpus.sources.arrow.part import Part
from sonant.corpus.sources.locate import basename, entries, is_litter
from sonant.corpus.sources.naming import in_natural_order, split_called
from sonant.corpus.utterance import Finding

STATE, SPLITS = "state.json", "dataset_dict.json"
EXTENSIONS = (".parquet", ".arrow")
_SHARD = re.compile(r"(?:.*\D)?(\d+)")
_NUMBERED = re.compile(r"(.+?)-(\d{4,6})-of-(\d{4,6})(?:-[0-9a-f]+)?")
_NO_SPLITS = ("data", "part")  # what files in pieces are often called
_FOLDERS_TRIED = 8  # when a layout is recognised


def is_data_file(location: str) -> bool:
    name = basename(location.partition("?")[0])
    return name.casefold().endswith(EXTENSIONS) and not is_litter(name) and not name.startswith("cache-")


def holds_saved(location: str, names: Sequence[str]) -> bool:
    """Whether datasets were saved in this folder, or in folders of it, or in numbered folders of those."""
    if SPLITS in names or STATE in names:
        return True
    for folder in _folders(names)[:_FOLDERS_TRIED]:
        below = storage.join(location, folder)
        inside = entries(below)
        shards = [name for name in _folders(inside) if _SHARD.fullmatch(name)]
        if STATE in inside or any(STATE in entries(storage.join(below, name)) for name in shards[:1]):
            return True
    return False


def first_data_file(location: str, names: Sequence[str]) -> str | None:
    """A Parquet or Arrow file in the folder or up to two folders further down."""
    for _ in range(3):
        for name in names:
            if is_data_file(name) and not name.endswith("/"):
                return storage.join(location, name)
        folders = [name for name in _folders(names) if not is_litter(name)]
        if not folders:
            return None
        location = storage.join(location, "data" if "data" in folders else folders[0])
        names = entries(location)
    return None


def parts_of(location: str) -> Iterator[Part | Finding]:
    """Every part; a SourceError where there is none."""
    names = entries(location)
    if not names:
        if not is_data_file(location):
            raise SourceError(location, "there is no dataset here.", "Name the folder that `save_to_disk` wrote.")
        yield Part(location, (location,), _split_of(location, ""))
        return
    found = _saved_parts(location, names)
    found = found if holds_saved(location, names) else _files(location)
    num_parts = 0
    for part in found:
        num_parts += isinstance(part, Part)
        yield part
    if not num_parts:
        raise SourceError(location, "no dataset was found in it.", "Name the folder that `save_to_disk` wrote.")


def _saved_parts(location: str, names: Sequence[str]) -> Iterator[Part | Finding]:
    if STATE in names:
        yield from _saved(location, split_called(basename(location)))
        return
    shards = [name for name in _folders(names) if _SHARD.fullmatch(name)]
    if SPLITS not in names and shards and STATE in entries(storage.join(location, shards[0])):
        yield from _shards(location, shards, split_called(basename(location)))
        return
    for name in _splits_named(location) if SPLITS in names else _folders(names):
        folder = storage.join(location, name)
        inside = entries(folder)
        if STATE in inside:
            yield from _saved(folder, split_called(name) or name)
        elif inner := [shard for shard in _folders(inside) if _SHARD.fullmatch(shard)]:
            yield from _shards(folder, inner, split_called(name) or name)
        elif SPLITS in names:
            yield _missing(location, f"{SPLITS} names the split '{name}', but no dataset is saved in it")


def _splits_named(location: str) -> list[str]:
    where = storage.join(location, SPLITS)
    names = _json(where).get("splits")
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise SourceError(where, "it names no splits.", "Save the dataset again.")
    return names


def _shards(folder: str, names: Sequence[str], split: str | None) -> Iterator[Part | Finding]:
    """Saved datasets with a number for a name, by number; a hole among them is told."""
    by_number: dict[int, str] = {}
    for name in names:
        number = _number(name)
        if number in by_number:
            problem = f"'{by_number[number]}' and '{name}' are both the shard {number}."
            raise SourceError(folder, problem, "Remove one of the two.")
        by_number[number] = name
    yield from _holes(folder, by_number, max(by_number) + 1)
    for _, name in sorted(by_number.items()):
        shard = storage.join(folder, name)
        if STATE in entries(shard):
            yield from _saved(shard, split)
        else:
            yield _missing(shard, f"no dataset is saved in this shard: {STATE} is missing")


def _holes(place: str, numbers: Any, end: int) -> Iterator[Finding]:
    """The shards from 0 on (or from 1 on) that are not there."""
    absent = [number for number in range(end) if number not in numbers]
    absent = absent[1:] if absent[:1] == [0] and 1 in numbers and end == max(numbers) + 1 else absent
    if absent:
        shown = ", ".join(map(str, absent[:8])) + (" …" if len(absent) > 8 else "")
        yield _missing(place, f"of {end} shards {len(absent)} are missing: {shown}")


def _saved(folder: str, split: str | None) -> Iterator[Part | Finding]:
    """The files that a saved dataset names: one part, or one for each where addresses cannot name the folder."""
    where = storage.join(folder, STATE)
    state = _json(where)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        problem = "its rows are chosen by a list of indices, as old versions of `datasets` saved them."
        raise SourceError(where, problem, "Load it and save it again: that writes the rows themselves.")
    try:
        files = tuple(storage.join(folder, basename(entry["filename"])) for entry in state["_data_files"])
    except (KeyError, TypeError) as error:
        raise SourceError(where, "it names no files of data.", "Save the dataset again.") from error
    absent = [file for file in files if not storage.exists(file)]
    for file in absent:
        yield _missing(folder, f"{STATE} names '{basename(file)}', which is not there")
    said = state.get("_split")
    split = split or (split_called(said) or said if isinstance(said, str) else None)
    if storage.is_remote(folder) or absent:
        yield from (Part(file, (file,), split) for file in files if file not in absent)
    else:
        yield Part(folder, files, split)


def _files(location: str) -> Iterator[Part | Finding]:
    """Parquet and Arrow files as the hub lays them out."""
    start = len(location.rstrip("/")) + 1
    found = [path for path in storage.list_files(location) if is_data_file(path) and "/." not in path[start:]]
    counted: dict[tuple[str, int], set[int]] = defaultdict(set)
    for path in found:
        if numbered := _NUMBERED.fullmatch(_stem(path)):
            counted[storage.join(storage.parent(path), numbered[1]), int(numbered[3])].add(int(numbered[2]))
    for (name, count), numbers in counted.items():
        yield from _holes(name, numbers, count)
    for path in sorted(found, key=in_natural_order):
        yield Part(path, (path,), _split_of(path, path[start:]))


def _split_of(path: str, below: str) -> str | None:
    """The split that a file's name begins or ends with, or that a folder of it is called."""
    stem = _stem(path)
    numbered = _NUMBERED.fullmatch(stem)
    name = numbered[1] if numbered else stem
    for part in (name, name.rpartition("-")[2], *reversed(below.split("/")[:-1])):
        if split := split_called(part.removeprefix("partial-")):
            return split
    return name if numbered and below and name not in _NO_SPLITS else None


def _missing(place: str, problem: str) -> Finding:
    action = "Copy it from where the others came from."
    return Finding(rule="missing-shard", place=place, problem=f"{problem}.", action=action)


def _json(where: str) -> dict[str, Any]:
    try:
        content = json.loads(storage.read_bytes(where))
    except ValueError as error:
        raise SourceError(where, f"this is not JSON: {error}.", "Save the dataset again.") from error
    if not isinstance(content, dict):
        raise SourceError(where, "this is not what `datasets` writes.", "Save the dataset again.")
    return content


def _folders(names: Sequence[str]) -> list[str]:
    return [name.rstrip("/") for name in names if name.endswith("/")]


def _number(name: str) -> int:
    found = _SHARD.fullmatch(name)
    assert found
    return int(found[1])


def _stem(path: str) -> str:
    return basename(path.partition("?")[0]).rpartition(".")[0]
