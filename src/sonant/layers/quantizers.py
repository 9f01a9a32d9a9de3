"""Quantizers: frames told apart by the entries of codebooks.

Shapes: M frames, E width of what is quantized, G groups, V entries a group, Q width of an entry, D width of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ProductQuantizerConfig:
    num_groups: Annotated[int, Within(1, 64)] = 2
    num_entries: Annotated[int, Within(2, 65536)] = 320  # of each group
    width: Annotated[int, Within(1, 65536)] = 256  # of all groups together
    dropout: Annotated[float, Within(0, 0.99)] = 0.0  # of what is quantized
    noise: bool = True  # in training the choice is drawn; without, the likeliest entry is chosen

    def __post_init__(self) -> None:
        check_fields(self)
        if self.width % self.num_groups:
            problem = f"{self.num_groups} groups cannot share a width of {self.width} evenly."
            raise ConfigError("num_groups", problem, "Choose a divisor of the width.")


@dataclass(frozen=True)
class Quantized:
    vectors: Tensor  # (M, D)
    codes: Tensor  # (M, G) int64: the entries chosen
    perplexity: Tensor  # scalar: how many entries are in use on average, summed over groups


class ProductQuantizer(nn.Module):
    """One entry of each group by the Gumbel softmax (Jang et al. 2016), with the gradient of the soft choice.

    The perplexity is that of the mean soft choice without noise, in training and in evaluation alike.
    """

    def __init__(self, inputs: int, config: ProductQuantizerConfig) -> None:
        super().__init__()
        self.config = config
        entry = config.width // config.num_groups
        self.choose = nn.Linear(inputs, config.num_groups * config.num_entries)
        self.entries = nn.Parameter(torch.rand(config.num_groups, config.num_entries, entry))  # (G, V, Q)
        nn.init.normal_(self.choose.weight)
        nn.init.zeros_(self.choose.bias)

    def forward(self, x: Tensor, temperature: float) -> Quantized:
        """Maps (M, E); the noise of the choice comes with training, the warmer the more."""
        logits = self.choose(x).float().view(len(x), *self.entries.shape[:2])  # (M, G, V)
        with torch.autocast(x.device.type, enabled=False):
            if self.training:
                noisy = logits + _gumbel_like(logits) if self.config.noise else logits
                soft = (noisy / temperature).softmax(dim=-1)
                codes = soft.argmax(dim=-1)  # (M, G)
                # One or zero to the bit: minus and plus the same number cancel where there is nothing else.
                weights = F.one_hot(codes, logits.shape[2]) - soft.detach() + soft
            else:
                codes = logits.argmax(dim=-1)
                weights = F.one_hot(codes, logits.shape[2]).float()
            vectors = torch.bmm(weights.transpose(0, 1), self.entries.float())  # (G, M, Q)
            return Quantized(vectors.transpose(0, 1).flatten(1), codes, _perplexity(logits))


class RandomProjectionQuantizer(nn.Module):
    """The nearest entry of a random codebook after a random projection; nothing of it is ever learnt.

    Reference: Chiu et al., "Self-supervised Learning with Random-projection Quantizer for Speech Recognition" (2022).
    """

    projection: Tensor
    entries: Tensor

    def __init__(self, inputs: int, *, num_entries: int, width: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        bound = (6 / (inputs + width)) ** 0.5
        projection = (2 * torch.rand(inputs, width, generator=generator) - 1) * bound
        entries = F.normalize(torch.randn(num_entries, width, generator=generator), dim=1)
        self.register_buffer("projection", projection)  # (E, Q)
        self.register_buffer("entries", entries)  # (V, Q)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Maps (M, E) to (M,) entries."""
        with torch.autocast(x.device.type, enabled=False):
            # Of unit vectors the nearest is the most similar; the length of the projection does not matter.
            return (x.float() @ self.projection.float() @ self.entries.float().t()).argmax(dim=1)


def _gumbel_like(logits: Tensor) -> Tensor:
    return -torch.empty_like(logits).exponential_().log()


def _perplexity(logits: Tensor) -> Tensor:
    """Summed over groups; 0 of no frame."""
    mean = logits.softmax(dim=-1).sum(dim=0) / max(len(logits), 1)  # (G, V)
    # An entry so unlikely that its mean is 0 would give log 0, and with it NaN as gradient of everything.
    entropy = -(mean * mean.clamp(min=torch.finfo(mean.dtype).tiny).log()).sum(dim=-1)
    return entropy.exp().sum() * float(len(logits) > 0)
