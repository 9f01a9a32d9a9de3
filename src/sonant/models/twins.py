"""Hearing while another thread learns: by twins of a model, which share its weights and nothing that changes.

Shapes: N samples, S frames as heard or as a layer gives them, E their width.
"""

from __future__ import annotations

import copy
from threading import Lock, local
from typing import Any

import numpy as np
import torch

from sonant.base.lengths import Lengths


class Hearing:
    """Maps samples (N,) to frames (S, E) behind the front end, and behind so many layers; each thread has its twin."""

    def __init__(self, model: Any, num_layers: int | None, *, in_bf16: bool = False) -> None:
        """`in_bf16` is how the training computes that it hears for."""
        self.num_layers, self.in_bf16 = num_layers, in_bf16
        self._first = _twin(model)  # it never runs, so that it can be copied at any time
        self._lock, self._mine = Lock(), local()

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        twin, device = self._own(), next(self._first.parameters()).device
        waveforms, lengths = torch.from_numpy(samples)[None].to(device), torch.tensor([len(samples)], device=device)
        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=self.in_bf16):
            heard = twin.hear(waveforms, Lengths(lengths))
            if self.num_layers is not None:
                heard = twin.deeper(heard, self.num_layers)
        frames: np.ndarray = heard.frames[0, : heard.lengths.longest].float().cpu().numpy()
        return frames

    def _own(self) -> Any:
        device = next(self._first.parameters()).device
        if getattr(self._mine, "device", None) != device:
            with self._lock:
                self._mine.twin = _twin(self._first).to(device)  # the weights are there; buffers follow
            self._mine.device = device
        return self._mine.twin


def _twin(model: Any) -> Any:
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared).eval()
