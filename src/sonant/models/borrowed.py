"""Networks of speech borrowed from `transformers`: their configs, checked, their dropouts, and adapters for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from sonant.base import storage
from sonant.base.errors import ConfigError, SonantError
from sonant.base.names import suggestion
from sonant.models.causal_lora import LoraConfig, add_lora

_DROPOUTS = {  # ours, and what transformers calls it in one family or another
    "dropout": ("hidden_dropout", "dropout", "conformer_conv_dropout"),
    "attention_dropout": ("attention_dropout",),
    "activation_dropout": ("activation_dropout",),
    "projection_dropout": ("feat_proj_dropout",),
    "layer_drop": ("layerdrop", "encoder_layerdrop"),
}


def config_for(folder: str, family: str, settings: Mapping[str, Any], families: Sequence[str]) -> Any:
    """That of a folder, or without one of a family and its settings; of a family that is among those given."""
    if folder:
        return _of_folder(folder, families)
    _check_family(family, families, "model.family")
    return transformers_config(family, settings)


def transformers_config(family: str, settings: Mapping[str, Any]) -> Any:
    """The config of a family; a setting that it does not have is refused, where transformers would keep it."""
    from huggingface_hub.errors import StrictDataclassError
    from transformers import AutoConfig

    usual = AutoConfig.for_model(family)
    known = {*usual.to_dict(), *usual.attribute_map, "pad_token_id", "bos_token_id", "eos_token_id"}
    for key in settings:
        if key not in known and not hasattr(usual, key):
            raise ConfigError(f"model.settings.{key}", f"'{family}' has no such setting.", suggestion(key, known))
    try:
        return AutoConfig.for_model(family, **settings)
    except (TypeError, ValueError, StrictDataclassError) as error:
        told = " ".join(str(error).split())
        raise ConfigError("model.settings", f"'{family}' refuses them: {told}.", "Correct the settings.") from error


def set_dropouts(described: Any, config: Any) -> None:
    """Those of our config, by the names that the family has for them; one that it does not have is refused."""
    for ours, names in _DROPOUTS.items():
        rate: float = getattr(config, ours, 0.0)
        known = [name for name in names if hasattr(described, name)]
        if rate and not known:
            problem = f"'{described.model_type}' has no such dropout."
            raise ConfigError(f"model.{ours}", problem, "Leave it out.")
        for name in known:
            setattr(described, name, rate)


def adapt_layers(model: Any, config: LoraConfig) -> None:
    """Adapters beside the matrices of the layers; nothing else learns."""
    named = model.named_modules()
    matrices = {name.rpartition(".")[2] for name, part in named if isinstance(part, nn.Linear) and ".layers." in name}
    add_lora(model, config if config.targets else replace(config, targets=tuple(sorted(matrices))))


def _of_folder(folder: str, families: Sequence[str]) -> Any:
    from transformers import AutoConfig

    if not storage.exists(storage.join(folder, "config.json")):
        raise SonantError(folder, "config.json is missing.", "Name the folder of a speech encoder.")
    try:
        found = AutoConfig.from_pretrained(folder)
    except (OSError, ValueError) as error:
        problem = f"its config.json cannot be used: {str(error).splitlines()[0]}"
        raise SonantError(folder, problem, "Name the folder of a speech encoder.") from error
    _check_family(found.model_type, families, folder)
    return found


def _check_family(family: str, families: Sequence[str], where: str) -> None:
    if family not in families:
        problem = f"'{family}' cannot be learnt with here."
        raise ConfigError(where, problem, suggestion(family, families))
