"""The moving average of the weights: what is validated and kept, while training goes on with the live ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from sonant.training.shares import placed_as


class MovingAverage:
    """Holds a copy in float32 of every weight that learns.

    The decay warms up, min(decay, (1 + n) / (10 + n)) after n updates, so that the first weights are soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.num_updates = decay, 0
        self.live = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.shadow = {name: p.detach().float().clone() for name, p in self.live.items()}

    @torch.no_grad()
    def update(self) -> None:
        self.num_updates += 1
        decay = min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))
        shadow, live = list(self.shadow.values()), [p.detach().float() for p in self.live.values()]
        torch._foreach_lerp_(shadow, live, 1 - decay)

    @contextmanager
    @torch.no_grad()
    def in_place(self) -> Iterator[None]:
        """The model has the averaged weights inside, the live ones again afterwards, to the bit."""
        kept = {name: p.detach().clone() for name, p in self.live.items()}
        for name, parameter in self.live.items():
            parameter.copy_(self.shadow[name])
        try:
            yield
        finally:
            for name, parameter in self.live.items():
                parameter.copy_(kept[name])

    def state(self) -> dict[str, Tensor]:
        return {**self.shadow, "/updates": torch.tensor(self.num_updates)}

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.num_updates = int(state["/updates"])
        for name, value in self.shadow.items():
            value.copy_(placed_as(state[name], value))
