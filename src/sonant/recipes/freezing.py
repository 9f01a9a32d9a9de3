"""Which parameters stay as they are, and which begin to learn later: by exact names, names of modules, and ranges.

wav2vec2.encoder.layers.0-5     layers 0 to 5, and not 10 to 19
wav2vec2.feature_extractor      all that is below it
*.bias                          a shell pattern of whole names
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from torch import nn

from sonant.base.errors import ConfigError
from sonant.base.names import suggestion

_RANGE = re.compile(r"(?<=\.)(\d+)-(\d+)(?=\.|$)")
_CONVOLUTIONS = ("encoder.conv1", "encoder.conv2", "encoder.conv3", "encoder.groupnorm")
FRONT_ENDS = ("*.feature_extractor", *_CONVOLUTIONS, *(f"model.{name}" for name in _CONVOLUTIONS))


def patterns(model: nn.Module, name: str, key: str) -> list[str]:
    """A name as shell patterns of parameters; one that fits nothing is a mistake, each of a range by itself."""
    names = [name for name, _ in model.named_parameters()]
    spread = _spread(name)
    for one in spread or [name]:
        if not any(fnmatchcase(name, pattern) for name in names for pattern in _below(one)):
            modules = [name for name, _ in model.named_modules() if name]
            of_range = "" if one == name else f" (of '{name}')"
            problem = f"no parameter has the name '{one}'{of_range}."
            raise ConfigError(key, problem, suggestion(one, [*modules, *names]))
    return [pattern for one in spread for pattern in _below(one)]


def freeze(model: nn.Module, names: Iterable[str]) -> None:
    for name in names:
        for pattern in patterns(model, name, "freeze"):
            for parameter_name, parameter in model.named_parameters():
                if fnmatchcase(parameter_name, pattern):
                    parameter.requires_grad_(False)


def freeze_front_end(model: nn.Module) -> None:
    """What makes frames of waveforms, where that has weights of its own."""
    for name, parameter in model.named_parameters():
        if any(fnmatchcase(name, f"{front_end}.*") for front_end in FRONT_ENDS):
            parameter.requires_grad_(False)


def beginnings(model: nn.Module, begins: Mapping[str, int]) -> dict[str, int]:
    """The time of each parameter that has one, the latest where there are several; what is frozen stays so."""
    found: dict[str, int] = {}
    learning = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    for name, step in begins.items():
        chosen = patterns(model, name, "begins")
        fitting = [one for one in learning if any(fnmatchcase(one, pattern) for pattern in chosen)]
        if not fitting:
            problem = "all of it is frozen, and never begins to learn."
            raise ConfigError(f"begins.{name}", problem, "Leave it out of freeze, or name something else.")
        found |= {one: max(step, found.get(one, 0)) for one in fitting}
    if learning and len(found) == len(learning) and min(found.values()) > 0:
        problem = f"nothing learns before step {min(found.values())}."
        raise ConfigError("begins", problem, "Leave something out of it that learns from the beginning.")
    return found


def _below(name: str) -> tuple[str, str]:
    """Patterns of a parameter of this name, and of those in a module of this name."""
    return name, f"{name}.*"


def _spread(name: str) -> list[str]:
    found = _RANGE.search(name)
    if not found:
        return [name]
    first, last = int(found[1]), int(found[2])
    return [
        one
        for number in range(first, last + 1)
        for one in _spread(name[: found.start()] + str(number) + name[found.end() :])
    ]
