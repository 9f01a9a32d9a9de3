"""Named tensors in a safetensors file, written whole or not at all; never a pickle."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch
from torch import Tensor

from sonant.base import storage
from sonant.base.errors import SonantError, StorageError


def write_tensors(location: str, tensors: Mapping[str, Tensor], notes: Mapping[str, str] | None = None) -> None:
    """The same tensors give the same bytes; those that share memory are written once each."""
    content = packed(tensors, notes)
    storage.write_whole(location, lambda file: file.write(content))


def packed(tensors: Mapping[str, Tensor], notes: Mapping[str, str] | None = None) -> bytes:
    """What such a file holds."""
    from safetensors.torch import save

    ready = {name: tensors[name].detach().to("cpu").contiguous() for name in sorted(tensors)}
    seen: set[int] = set()
    for name, tensor in ready.items():
        if tensor.untyped_storage().data_ptr() in seen:
            ready[name] = tensor.clone()
        seen.add(tensor.untyped_storage().data_ptr())
    content: bytes = save(ready, dict(notes or {}) | {"format": "pt"})
    return content


def read_tensors(location: str, device: str = "cpu") -> dict[str, Tensor]:
    """The tensors of a file, or a sentence that says what is wrong with it."""
    from safetensors import SafetensorError
    from safetensors.torch import load, load_file

    try:
        if storage.is_remote(location):
            found: dict[str, Tensor] = load(storage.read_bytes(location))
            return {name: tensor.to(device) for name, tensor in found.items()}
        if not os.path.exists(location):
            raise StorageError(location, "nothing is there.", "Check the path; names are case-sensitive.")
        with storage.storage_errors(location):
            loaded: dict[str, Tensor] = load_file(location, device=device)
            return loaded
    except SafetensorError as error:
        problem = f"this is no whole safetensors file: {error}."
        raise SonantError(location, problem, "Copy it again from where it came from, or use an older one.") from error


def load_weights(model: torch.nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Puts weights into a model of the same names and shapes; says which ones differ if some do."""
    own = model.state_dict()
    missing = sorted(own.keys() - weights.keys())
    unknown = sorted(weights.keys() - own.keys())
    if missing or unknown:
        told = "; ".join(
            f"{what}: {', '.join(names[:3])}{' …' if len(names) > 3 else ''}"
            for what, names in (("missing", missing), ("not in the model", unknown))
            if names
        )
        raise SonantError(
            where, f"the weights do not belong to this model ({told}).", "Use the settings they came with."
        )
    for name, tensor in weights.items():
        if tensor.shape != own[name].shape:
            found, required = tuple(tensor.shape), tuple(own[name].shape)
            problem = f"'{name}' has the shape {found}, the model needs {required}."
            raise SonantError(where, problem, "Use the settings that these weights came with.")
    model.load_state_dict(dict(weights))
