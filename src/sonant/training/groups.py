"""Which parameter learns at which rate: groups by the patterns of their names, each parameter in exactly one.

Biases, norms and everything else with one dimension are not decayed. A pattern is a shell pattern of whole names
(`encoder.layers.1.*` is layer 1 and not layers 10 to 19); one that fits nothing is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from torch import nn

from sonant.base.errors import ConfigError
from sonant.base.names import suggestion


@dataclass(frozen=True, kw_only=True)
class GroupConfig:
    """What differs for the parameters whose names fit; the first group that fits has them."""

    rate: float = 1.0  # times the rate of the optimizer
    decay: float | None = None  # weight decay; None: as the optimizer says
    frozen: bool = False


@dataclass(frozen=True)
class Group:
    """Parameters that are treated alike."""

    name: str
    parameters: dict[str, nn.Parameter]
    rate: float
    decay: float


def freeze(model: nn.Module, groups: Mapping[str, GroupConfig]) -> None:
    """Switches off the gradients of frozen groups; done before anything is distributed."""
    frozen = {pattern for pattern, group in groups.items() if group.frozen}
    for name, parameter in model.named_parameters():
        if (pattern := _pattern_of(name, groups)) and pattern in frozen:
            parameter.requires_grad_(False)


def group_parameters(model: nn.Module, groups: Mapping[str, GroupConfig], decay: float) -> list[Group]:
    """Every parameter that learns, in exactly one group."""
    found: dict[tuple[str, bool], dict[str, nn.Parameter]] = {}
    fitting: set[str] = set()
    for name, parameter in model.named_parameters():
        pattern = _pattern_of(name, groups)
        fitting.add(pattern)
        if parameter.requires_grad:
            found.setdefault((pattern, parameter.ndim >= 2), {})[name] = parameter
    for pattern in groups:
        if pattern not in fitting:
            names = [name for name, _ in model.named_parameters()]
            near = suggestion(pattern, names)
            raise ConfigError(f"optimizer.groups.{pattern}", "no parameter has a name that fits.", near)
    if not found:
        raise ConfigError("optimizer.groups", "every parameter is frozen: nothing can be learnt.", "Free some of them.")
    return [
        _group(pattern, parameters, groups.get(pattern), decay if is_decayed else 0.0, is_decayed)
        for (pattern, is_decayed), parameters in found.items()
    ]


def _group(
    pattern: str, parameters: dict[str, nn.Parameter], config: GroupConfig | None, decay: float, is_decayed: bool
) -> Group:
    config = config or GroupConfig()
    decayed = config.decay if config.decay is not None and is_decayed else decay
    return Group(f"{pattern or 'all'}{'' if is_decayed else ' (no decay)'}", parameters, config.rate, decayed)


def _pattern_of(name: str, groups: Mapping[str, GroupConfig]) -> str:
    return next((pattern for pattern in groups if fnmatchcase(name, pattern)), "")
