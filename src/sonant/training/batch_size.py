"""The largest batch that memory holds, found by trying: doubled until it fails, then halved between the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sonant.base import config as configs
from sonant.base.document import flat
from sonant.base.errors import ConfigError
from sonant.training.console import Console
from sonant.training.run_folder import RunFolder
from sonant.training.scan import OutOfMemoryError, scan_in_child

_TRIES = 3  # between the largest that fits and the smallest that does not
_MOST_DOUBLINGS = 8


def largest_that_fits(config: Any, key: str, command: Sequence[str], run: RunFolder, console: Console) -> int:
    """A value of `key`, an eighth below what just fitted; each try is a process of its own."""
    now = flat(configs.to_dict(config)).get(key)
    if not isinstance(now, int | float):
        raise ConfigError(key, "this recipe's batches have no size to be found.", "Leave --find-batch out.")
    run.require_writable()
    configs.save(config, run.path("config.yaml"))
    fits = largest(max(1, round(now)), lambda size: _does_fit(size, key, command, config, console))
    if not fits:
        raise ConfigError(key, "not even a batch of 1 fits in memory.", "Make the model smaller.")
    found = max(1, fits - fits // 8)
    console.say(f"{key}={found}: an eighth less than the largest that fitted ({fits:,})")
    return found


def largest(size: int, does_fit: Callable[[int], bool]) -> int:
    """About the largest number that fits, from one to begin with; 0 if not even 1 does."""
    fits = fails = 0

    def tried(number: int) -> bool:
        nonlocal fits, fails
        is_room = does_fit(number)
        fits, fails = (number, fails) if is_room else (fits, number)
        return is_room

    for doublings in range(_MOST_DOUBLINGS):
        if not tried(size << doublings):
            break
    while not fits and fails > 1:
        tried(fails // 2)
    for _ in range(_TRIES):
        middle = (fits + fails) // 2
        if not fails or middle in (fits, fails):
            break
        tried(middle)
    return fits


def _does_fit(size: int, key: str, command: Sequence[str], config: Any, console: Console) -> bool:
    try:
        scan_in_child([*command, "--set", f"{key}={size}"], config.trainer.guard, Console(is_silent=True))
    except OutOfMemoryError as error:
        console.say(f"{key}={size}: {error.problem}")
        return False
    console.say(f"{key}={size}: fits")
    return True
