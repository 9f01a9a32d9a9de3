"""AdamW, and Muon for matrices with AdamW for the rest, as one object whose state is named tensors.

Muon (Jordan et al. 2024) orthogonalises the momentum of each matrix, so that all its directions learn alike; LOG.md
has what it gave. Its rate is scaled to the size of an AdamW update, so that one rate serves both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, cast

import torch
from torch import Tensor, nn

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import SonantError
from sonant.training.groups import Group, GroupConfig, group_parameters
from sonant.training.shares import placed_as, whole


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    kind: Literal["adamw", "muon"] = "adamw"
    rate: Annotated[float, Within(0, 100)] = 5e-4
    beta1: Annotated[float, Within(0, 1)] = 0.9
    beta2: Annotated[float, Within(0, 1)] = 0.98
    epsilon: Annotated[float, Within(0, 1)] = 1e-8
    decay: Annotated[float, Within(0, 10)] = 0.01
    groups: dict[str, GroupConfig] = field(default_factory=dict)  # pattern of names -> what differs for them
    momentum: Annotated[float, Within(0, 1)] = 0.95  # of muon
    muon_rate: Annotated[float, Within(0, 100)] = 1.0  # times the rate, for the matrices that muon has
    muon_leaves: tuple[str, ...] = ("*embed*", "*wte*", "*wpe*", "*head*")  # matrices that stay with AdamW

    def __post_init__(self) -> None:
        check_fields(self)


class Optimizer:
    """The optimizers of a model, stepped together."""

    def __init__(self, model: nn.Module, config: OptimizerConfig) -> None:
        self.config = config
        self.groups = group_parameters(model, config.groups, config.decay)
        self.names = {parameter: name for group in self.groups for name, parameter in group.parameters.items()}
        self.members = list(self._built())

    def _built(self) -> Iterator[torch.optim.Optimizer]:
        config = self.config
        of_muon = {name for group in self.groups for name, p in group.parameters.items() if self._is_muons(name, p)}
        if of_muon:
            groups = _torch_groups(self.groups, lambda name: name in of_muon, config.rate * config.muon_rate)
            yield torch.optim.Muon(
                groups, lr=config.rate, momentum=config.momentum, adjust_lr_fn="match_rms_adamw", nesterov=True
            )
        if groups := _torch_groups(self.groups, lambda name: name not in of_muon, config.rate):
            yield torch.optim.AdamW(
                groups, lr=config.rate, betas=(config.beta1, config.beta2), eps=config.epsilon, fused=True
            )

    def _is_muons(self, name: str, parameter: nn.Parameter) -> bool:
        is_left = any(fnmatchcase(name, pattern) for pattern in self.config.muon_leaves)
        return self.config.kind == "muon" and parameter.ndim == 2 and not is_left

    def set_rate(self, factor: float) -> None:
        """The rate of every group becomes this share of its own."""
        for member in self.members:
            for group in member.param_groups:
                group["lr"] = group["base_rate"] * factor

    def zero(self) -> None:
        for member in self.members:
            member.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """What it remembers, by `parameter/what`."""
        return {
            f"{self.names[cast(nn.Parameter, parameter)]}/{what}": whole(
                value if isinstance(value, Tensor) else torch.tensor(value)
            )
            for member in self.members
            for parameter, values in member.state.items()
            for what, value in values.items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes up what `state` gave, for parameters of the same names and shapes."""
        by_name: dict[str, dict[str, Tensor]] = {}
        for key, value in state.items():
            name, _, what = key.rpartition("/")
            by_name.setdefault(name, {})[what] = value
        unknown = by_name.keys() - set(self.names.values())
        if unknown:
            problem = f"it holds the optimizer's memory of '{min(unknown)}', which the model does not have or learn."
            raise SonantError("state", problem, "Go on with the settings that the run began with.")
        for member in self.members:
            for group in member.param_groups:
                for parameter in group["params"]:
                    found = by_name.get(self.names[parameter], {})
                    if found:
                        member.state[parameter] = {
                            what: placed_as(value, parameter).clone() for what, value in found.items()
                        }


def _torch_groups(groups: Sequence[Group], is_mine: Any, rate: float) -> list[dict[str, Any]]:
    made = []
    for group in groups:
        parameters = [parameter for name, parameter in group.parameters.items() if is_mine(name)]
        if parameters:
            base = rate * group.rate
            made.append({"params": parameters, "lr": base, "base_rate": base, "weight_decay": group.decay})
    return made
