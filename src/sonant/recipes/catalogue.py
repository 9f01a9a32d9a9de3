"""Recipes by name: a task with its defaults, settings that come with Sonant, or somebody's own file.

open_recipe("language", ["plays.txt"])                # a task
open_recipe("shakespeare", ["input.txt"])             # settings that come along: src/sonant/recipes/configs
open_recipe("runs/plays/config.yaml")                 # what a run wrote: all of its settings
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from sonant.base import config as configs
from sonant.base import storage
from sonant.base.document import read_document
from sonant.base.errors import ConfigError, UsageError
from sonant.base.names import suggestion
from sonant.base.overrides import Given
from sonant.training.start import Build

# Each is a module with Config, DATA_KEY (what bare words after the recipe are), BATCH_KEY (what makes a batch larger)
# and build(config).
TASKS = {
    "language": "sonant.recipes.language",
    "pretrain": "sonant.recipes.pretrain",
    "ctc": "sonant.recipes.ctc",
    "seq2seq": "sonant.recipes.seq2seq",
}
_ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True)
class Recipe:
    """A task and its settings."""

    task: str
    config: Any
    batch_key: str
    build: Build


def open_recipe(name: str, data: Sequence[str] = (), overrides: Sequence[str | Given] = ()) -> Recipe:
    """A recipe, learning from `data` where that is given; `overrides` win over everything."""
    path = _path_of(name)
    task = read_document(path).values.get("task") if path else name
    if task not in TASKS:
        where = path or name
        raise ConfigError(f"{where}: task", f"'{task}' is no task.", suggestion(str(task), TASKS))
    module = importlib.import_module(TASKS[task])
    given = [Given(module.DATA_KEY, [absolute(place) for place in data], "DATA")] if data else []
    config = configs.load(module.Config, path, [*given, *overrides])
    return Recipe(task, config, module.BATCH_KEY, module.build(config))


def packaged() -> dict[str, str]:
    """The settings that come with Sonant: name -> file."""
    folder = resources.files("sonant.recipes") / "configs"
    return {
        entry.name.removesuffix(".yaml"): str(entry)
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".yaml")
    }


def _path_of(name: str) -> str | None:
    """The file behind a name; None for a task with its defaults."""
    found = packaged()
    if name in found:
        return found[name]
    if name in TASKS:
        return None
    if name.endswith(_ENDINGS) or storage.exists(name):
        return name
    raise UsageError(name, "there is no such recipe.", suggestion(name, [*TASKS, *found]) + " Or name a YAML file.")


def absolute(place: str) -> str:
    """A run may be gone on with from another folder."""
    return place if storage.is_remote(place) else os.path.abspath(os.path.expanduser(place))
