"""Recognisers with CTC on any speech encoder of `transformers`: from a folder, or from a config with chance weights.

A folder may be a checkpoint of Hugging Face or a bundle of ours, pretrained or fine-tuned: both have a config.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from torch import nn

from sonant.base import storage
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError, SonantError
from sonant.models import listening_halves
from sonant.models.borrowed import adapt_layers, config_for, set_dropouts, transformers_config
from sonant.models.causal_lora import LoraConfig
from sonant.models.language_adapters import LanguageConfig, begin, is_of_language, with_adapters
from sonant.models.listening_halves import load_half, new_half
from sonant.models.speech_encoders import FEATURE_FAMILIES, WAVEFORM_FAMILIES, listening
from sonant.models.speech_parts import quietly

FAMILIES = (*WAVEFORM_FAMILIES, *FEATURE_FAMILIES, *listening_halves.FAMILIES)
_Chance = Annotated[float, Within(0, 0.99)]
_OWN = ("_name_or_path", "transformers_version", "architectures", "dtype")
_HIDING = 0.05  # transformers has a vector for hidden frames only where its own share of them is above 0


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """From scratch: a family and its settings; or `folder`, with the weights that lie there."""

    kind: Literal["encoder"] = "encoder"
    folder: str = ""  # a checkpoint of transformers, or a bundle
    family: str = "wav2vec2"  # `model_type` of transformers; a folder has its own
    settings: dict[str, Any] = field(default_factory=dict)  # of its config, under its names: hidden_size, …
    dropout: _Chance = 0.0  # those of a checkpoint are meant for its pretraining, and are not taken over
    attention_dropout: _Chance = 0.0
    activation_dropout: _Chance = 0.0
    projection_dropout: _Chance = 0.0
    final_dropout: _Chance = 0.0
    layer_drop: _Chance = 0.0
    lora: LoraConfig | None = None  # the layers' matrices get adapters, and only these and the head learn
    adapter: LanguageConfig | None = None  # that of a language, as in MMS: only it and the head learn

    def __post_init__(self) -> None:
        check_fields(self)
        if self.folder and self.settings:
            problem = "settings are those of a model from scratch, a folder has its own."
            raise ConfigError("model.settings", problem, "Leave one of the two out.")
        for key in ("lora", "adapter"):
            if getattr(self, key) and not self.folder:
                problem = "adapters need a model that has learnt something."
                raise ConfigError(f"model.{key}", problem, "Name its folder.")
        if self.lora and self.adapter:
            raise ConfigError("model.adapter", "there are adapters of model.lora already.", "Leave one of the two out.")


def new_model(
    config: EncoderConfig, vocabulary_size: int, blank_id: int, *, hides_frames: bool
) -> tuple[nn.Module, list[str]]:
    """The model, and the weights that a folder did not have and that chance made."""
    described = config_for(config.folder, config.family, config.settings, FAMILIES)
    set_dropouts(described, config)
    described.pad_token_id = blank_id
    if config.adapter:
        with_adapters(described, config.adapter)
    if described.model_type in listening_halves.FAMILIES:
        model, missing = load_half(config.folder, described, vocabulary_size, config.final_dropout)
    else:
        described.vocab_size, described.final_dropout = vocabulary_size, config.final_dropout
        described.mask_time_prob, described.mask_feature_prob = _HIDING if hides_frames else 0.0, 0.0
        network, missing = _network(config.folder, described)
        if config.adapter:
            missing = begin(network, config.adapter, config.folder, missing)
        language = config.adapter.language if config.adapter else ""
        model = listening(network, normalizes=_normalizes(config.folder), language=language)
    _check_missing(missing, config)
    if config.lora:
        adapt_layers(model, config.lora)
        model.get_submodule("lm_head").requires_grad_(True)
    return model, missing


def build(config: Mapping[str, Any]) -> nn.Module:
    """What a bundle's config describes."""
    settings = dict(config["settings"])
    described = transformers_config(settings.pop("model_type"), settings)
    if described.model_type in listening_halves.FAMILIES:
        return new_half(described, config["vocabulary_size"], config["final_dropout"])
    network, _ = _network("", described)
    return listening(network, normalizes=config["normalize"], language=config.get("language", ""))


def description(model: Any) -> dict[str, Any]:
    """What `build` makes the model from again."""
    values = {name: value for name, value in model.config.to_dict().items() if name not in _OWN}
    if values["model_type"] in listening_halves.FAMILIES:
        rate = model.dropout.probability
        return {"settings": values, "vocabulary_size": model.lm_head.out_features, "final_dropout": rate}
    language = {"language": model.language} if model.language else {}
    return {"settings": values, "normalize": model.normalizes, **language}


def _network(folder: str, described: Any) -> tuple[Any, list[str]]:
    """Hugging Face's network with the weights of a folder, or with those of chance."""
    import torch
    from transformers import AutoModelForCTC

    try:
        if not folder:
            return AutoModelForCTC.from_config(described), []
        with quietly():
            network, told = AutoModelForCTC.from_pretrained(
                folder, config=described, dtype=torch.float32, ignore_mismatched_sizes=True, output_loading_info=True
            )
    except (OSError, ValueError, RuntimeError) as error:
        problem = f"it cannot be built: {str(error).splitlines()[0]}"
        raise SonantError(folder or "model.settings", problem, "Look at its settings and its weights.") from error
    mismatched = {entry[0] if isinstance(entry, tuple) else entry for entry in told["mismatched_keys"]}
    return network, sorted({*told["missing_keys"], *mismatched})


def _check_missing(missing: list[str], config: EncoderConfig) -> None:
    """Only the head, a new language's adapter and the vector for hidden frames may begin anew: else this is no
    checkpoint of that family."""
    known = [name for name in missing if "masked_spec_embed" not in name and not name.startswith("lm_head.")]
    strange = [name for name in known if not (config.adapter and is_of_language(name))]
    if strange:
        more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
        problem = f"weights of the encoder are missing: {', '.join(strange[:3])}{more}."
        raise SonantError(config.folder, problem, "Name a folder with a whole encoder.")


def _normalizes(folder: str) -> bool:
    """Whether the checkpoint wants each waveform with mean 0 and variance 1; one that says nothing does."""
    where = storage.join(folder, "preprocessor_config.json")
    if not folder or not storage.exists(where):
        return True
    return bool(json.loads(storage.read_bytes(where)).get("do_normalize", True))
