"""Every generator that a training draws from, as tensors: saved with its state, and put back after validation.

Draws for data need none of them (`sonant.base.randomness`); dropout and its like do.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn


def seed_all(seed: int, rank: int) -> None:
    """Starts every generator; each rank draws its own dropout."""
    mixed = (seed * 1_000_003 + rank) % 2**32
    random.seed(mixed)
    np.random.seed(mixed)
    torch.manual_seed(mixed)


def generators() -> dict[str, Tensor]:
    """Where every generator of this process stands."""
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    _, words, cached = random.getstate()
    found = {
        "torch": torch.get_rng_state(),
        "numpy": torch.from_numpy(np.asarray(keys, np.uint32).astype(np.int64)),
        "numpy.place": torch.tensor([float(position), float(has_gauss), float(gauss)], dtype=torch.float64),
        "python": torch.tensor(words, dtype=torch.int64),
        "python.cached": torch.tensor([] if cached is None else [cached], dtype=torch.float64),
    }
    if torch.cuda.is_available():
        found["cuda"] = torch.cuda.get_rng_state()
    return found


def restore_generators(state: Mapping[str, Tensor]) -> None:
    torch.set_rng_state(state["torch"])
    position, has_gauss, gauss = state["numpy.place"].tolist()
    keys = state["numpy"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", keys, int(position), int(has_gauss), gauss))
    cached = state["python.cached"].tolist()
    random.setstate((3, tuple(state["python"].tolist()), cached[0] if cached else None))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Whatever happens inside, generators, modes and buffers are afterwards what they were before."""
    state = generators()
    modes = [(module, module.training) for module in model.modules()]
    buffers = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                if name in buffers and not torch.equal(buffer, buffers[name]):
                    buffer.copy_(buffers[name])
        restore_generators(state)
