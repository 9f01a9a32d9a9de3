"""A state: everything that a run needs to go on bit for bit, as a folder that is whole or not there.

states/step-000500/
  weights.safetensors optimizer.safetensors [ema.safetensors] rank-0.safetensors rank-1.safetensors …
  state.json            plain values, and size and hash of every file beside it: written last

It is written under a temporary name and renamed. What is damaged all the same (a disk that lied, a copy that was cut)
is noticed before anything of it is used, and an older state is taken.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from sonant.base import storage
from sonant.base.errors import SonantError, StorageError
from sonant.checkpoints.tensors import read_tensors, write_tensors

FORMAT_VERSION = 1
DESCRIPTION = "state.json"
_NAME = re.compile(r"step-(\d+)$")


class StateError(SonantError):
    """A state that is not whole, or does not fit the run."""


@dataclass(frozen=True)
class State:
    """What lies in a state; tensors by file and name."""

    step: int
    values: dict[str, Any]
    tensors: dict[str, dict[str, Tensor]]


def state_folder(states: str, step: int) -> str:
    return os.path.join(states, f"step-{step:06d}")


def write_state(states: str, step: int, values: Mapping[str, Any], tensors: Mapping[str, Mapping[str, Tensor]]) -> str:
    """Writes a state beside the others; gives its folder."""
    folder = state_folder(states, step)
    temporary = os.path.join(states, f".{os.path.basename(folder)}.part")
    with storage.storage_errors(states):
        shutil.rmtree(temporary, ignore_errors=True)
        os.makedirs(temporary)
        try:
            for name, group in tensors.items():
                write_tensors(os.path.join(temporary, f"{name}.safetensors"), group)
            files = {path.name: _facts(path) for path in sorted(Path(temporary).iterdir())}
            description = {"format": FORMAT_VERSION, "step": step, "values": dict(values), "files": files}
            storage.write_text(os.path.join(temporary, DESCRIPTION), json.dumps(description, indent=1))
            if os.path.isdir(folder):  # a run that went back in time writes it anew
                shutil.rmtree(folder)
            os.rename(temporary, folder)
            _sync(states)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return folder


def read_state(folder: str, *, is_verified: bool = False) -> State:
    """Everything of a state, verified unless that was done; a StateError where it is not whole."""
    description = _description(folder) if is_verified else verify_state(folder)
    tensors = {
        name.removesuffix(".safetensors"): read_tensors(os.path.join(folder, name)) for name in description["files"]
    }
    return State(int(description["step"]), description["values"], tensors)


def verify_state(folder: str) -> dict[str, Any]:
    """Reads what a state says of itself and compares every file with it."""
    description = _description(folder)
    for name, facts in description["files"].items():
        path = Path(folder, name)
        if not path.is_file():
            raise StateError(folder, f"its file '{name}' is missing.", "An older state is needed.")
        if _facts(path) != facts:
            raise StateError(folder, f"its file '{name}' is not what was written.", "An older state is needed.")
    return description


def _description(folder: str) -> dict[str, Any]:
    where = os.path.join(folder, DESCRIPTION)
    try:
        description: dict[str, Any] = json.loads(storage.read_bytes(where))
    except (ValueError, StorageError) as error:
        raise StateError(folder, f"its {DESCRIPTION} is missing or damaged.", "An older state is needed.") from error
    if description.get("format") != FORMAT_VERSION:
        found = description.get("format")
        raise StateError(
            folder, f"format {found} was found, {FORMAT_VERSION} is read.", "Use the Sonant that wrote it."
        )
    return description


def list_states(states: str) -> list[str]:
    """The folders of states, newest first; temporary ones are none."""
    if not os.path.isdir(states):
        return []
    found = [(int(match[1]), name) for name in os.listdir(states) if (match := _NAME.fullmatch(name))]
    return [os.path.join(states, name) for _, name in sorted(found, reverse=True)]


def whole_states(states: str) -> Iterator[str | StateError]:
    """The folders of whole states, newest first; an error for each that is not whole."""
    for folder in list_states(states):
        try:
            verify_state(folder)
            yield folder
        except StateError as error:
            yield error


def step_of(folder: str) -> int:
    match = _NAME.search(folder.rstrip("/"))
    return int(match[1]) if match else -1


def remove_states(states: str, keep: set[int]) -> list[str]:
    """Removes what is not to be kept, and what a kill left half-written; gives the names of what is gone."""
    gone = []
    for folder in list_states(states):
        if step_of(folder) not in keep:
            os.rename(folder, doomed := os.path.join(states, f".{os.path.basename(folder)}.old"))
            shutil.rmtree(doomed, ignore_errors=True)
            gone.append(os.path.basename(folder))
    return gone


def clear_leftovers(states: str) -> None:
    """Removes what a kill left behind; only while nobody else writes here."""
    if os.path.isdir(states):
        for name in os.listdir(states):
            if name.startswith(".") and name.endswith((".part", ".old")):
                shutil.rmtree(os.path.join(states, name), ignore_errors=True)


def _facts(path: Path) -> dict[str, Any]:
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return {"bytes": path.stat().st_size, "hash": digest.hexdigest()}


def _sync(folder: str) -> None:
    """Makes a rename last, should the power fail."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
