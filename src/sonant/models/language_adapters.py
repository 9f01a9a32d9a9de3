"""An adapter for each language, behind every layer of one encoder that they all share: the way of MMS.

Reference: Pratap et al., "Scaling Speech Technology to 1,000+ Languages" (2023). A folder of `transformers` has the
adapter and the head of a language in adapter.LANGUAGE.safetensors, and its symbols under LANGUAGE in vocab.json.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from sonant.base import storage
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError, SonantError
from sonant.base.names import suggestion

_FILE = re.compile(r"adapter\.([\w-]+)\.safetensors")
_USUAL_WIDTH = 16
_KEY = "model.adapter"


@dataclass(frozen=True, kw_only=True)
class LanguageConfig:
    """Only the adapter and the head learn, so that each language is a small file beside one large one."""

    language: str  # as the folder calls it, e.g. spa
    new: bool = False  # begins anew, with symbols of its own; else it goes on from what the folder has
    width: Annotated[int, Within(1, 65536)] | None = None  # of the first adapters of a folder without any; None: 16

    def __post_init__(self) -> None:
        check_fields(self)
        if not re.fullmatch(r"[\w-]+", self.language):
            problem = f"'{self.language}' cannot be part of a file's name."
            raise ConfigError("language", problem, "Use letters, digits, - and _.")


def file_of(language: str) -> str:
    return f"adapter.{language}.safetensors"


def check_language(folder: str, config: LanguageConfig) -> None:
    """Whether the folder has what is to be gone on from."""
    known = _languages(folder)
    if not config.new and config.language not in known:
        problem = f"{folder} has no adapter for '{config.language}'."
        action = f"{suggestion(config.language, known)} Or set {_KEY}.new=true to begin one."
        raise ConfigError(f"{_KEY}.language", problem, action)


def with_adapters(described: Any, config: LanguageConfig) -> None:
    """Lets the config of a network say that its layers have adapters, if it does not yet."""
    if described.model_type != "wav2vec2" or not described.do_stable_layer_norm:
        problem = "layers with adapters are those of wav2vec2 whose norms stand in front (do_stable_layer_norm)."
        raise ConfigError(_KEY, problem, "Use another checkpoint, or model.lora.")
    own = described.adapter_attn_dim
    if own is not None and config.width not in (None, own):
        problem = f"it is {config.width}, but the adapters of the folder are {own} wide."
        raise ConfigError(f"{_KEY}.width", problem, "Leave it out.")
    described.adapter_attn_dim = own or config.width or _USUAL_WIDTH


def begin(network: Any, config: LanguageConfig, folder: str, missing: Iterable[str]) -> list[str]:
    """Gives a network of theirs the adapter and the head of a language; names what chance made of it."""
    left = [name for name in missing if not is_of_language(name)]
    own = {name: parameter for name, parameter in network.named_parameters() if is_of_language(name)}
    if config.new:
        network.init_adapter_layers()
        return sorted([*left, *own])
    found = _read(storage.join(folder, file_of(config.language)), own)
    heads = {name for name in found if name.startswith("lm_head.") and found[name].shape != own[name].shape}
    with torch.no_grad():
        for name in own.keys() - heads:
            own[name].copy_(found[name])
    return sorted([*left, *heads])


def freeze_the_rest(model: Any) -> None:
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_of_language(name))


def of_language(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What of a model's weights belongs to the language that it was trained for."""
    return {name: weight for name, weight in weights.items() if is_of_language(name)}


def is_of_language(name: str) -> bool:
    return ".adapter_layer." in name or name.startswith("lm_head.")


def _languages(folder: str) -> list[str]:
    names = (place.replace(os.sep, "/").rpartition("/")[2] for place in storage.list_files(folder))
    return sorted(found[1] for name in names if (found := _FILE.fullmatch(name)))


def _read(location: str, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    from safetensors.torch import load

    found: dict[str, Tensor] = load(storage.read_bytes(location))
    strange = sorted(own.keys() ^ found.keys())
    strange += [name for name in own.keys() & found.keys() if not _fits(name, own[name], found[name])]
    if strange:
        problem = f"it is no adapter of this encoder: '{strange[0]}' is missing, too much, or of another shape."
        raise SonantError(location, problem, "Copy it again from where the folder came from.")
    return found


def _fits(name: str, own: Tensor, found: Tensor) -> bool:
    """A head may be of another vocabulary, and then begins anew."""
    return found.shape == own.shape or name.startswith("lm_head.")
