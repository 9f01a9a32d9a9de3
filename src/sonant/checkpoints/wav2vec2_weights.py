"""wav2vec 2.0 to and from `transformers`: the same numbers under the names of either.

config = pretraining_config(read_json(folder), folder)
model.load_state_dict(from_transformers(tensors))
write(to_transformers(model.state_dict()), transformers_config(config))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from sonant.base.errors import ConfigError
from sonant.layers.quantizers import ProductQuantizerConfig
from sonant.layers.transformer import TransformerConfig
from sonant.layers.waveform_convolutions import ConvolutionsConfig
from sonant.models.wav2vec2 import Wav2Vec2Config
from sonant.models.wav2vec2_pretraining import Wav2Vec2PretrainingConfig

# Ours and theirs; `#` is the number of a layer. Behind each name may stand `.weight` or `.bias`.
_ENCODER = {
    "convolutions.layers.#.weight": "feature_extractor.conv_layers.#.conv.weight",
    "convolutions.layers.#.bias": "feature_extractor.conv_layers.#.conv.bias",
    "convolutions.layers.#.scale": "feature_extractor.conv_layers.#.layer_norm.weight",
    "convolutions.layers.#.shift": "feature_extractor.conv_layers.#.layer_norm.bias",
    "heard_norm": "feature_projection.layer_norm",
    "project": "feature_projection.projection",
    "hidden_frame": "masked_spec_embed",
    "positions.length": "encoder.pos_conv_embed.conv.parametrizations.weight.original0",
    "positions.direction": "encoder.pos_conv_embed.conv.parametrizations.weight.original1",
    "positions.bias": "encoder.pos_conv_embed.conv.bias",
    "transformer.norm": "encoder.layer_norm",
    "transformer.layers.#.attention.query": "encoder.layers.#.attention.q_proj",
    "transformer.layers.#.attention.key": "encoder.layers.#.attention.k_proj",
    "transformer.layers.#.attention.value": "encoder.layers.#.attention.v_proj",
    "transformer.layers.#.attention.out": "encoder.layers.#.attention.out_proj",
    "transformer.layers.#.attention_norm": "encoder.layers.#.layer_norm",
    "transformer.layers.#.feedforward.widen": "encoder.layers.#.feed_forward.intermediate_dense",
    "transformer.layers.#.feedforward.narrow": "encoder.layers.#.feed_forward.output_dense",
    "transformer.layers.#.feedforward_norm": "encoder.layers.#.final_layer_norm",
}
_HEADS = {
    "quantizer.entries": "quantizer.codevectors",
    "quantizer.choose": "quantizer.weight_proj",
    "project_context": "project_hid",
    "project_target": "project_q",
}
_OURS_TO_THEIRS = {f"encoder.{ours}": f"wav2vec2.{theirs}" for ours, theirs in _ENCODER.items()} | _HEADS
_THEIRS_TO_OURS = {theirs: ours for ours, theirs in _OURS_TO_THEIRS.items()} | {
    f"wav2vec2.encoder.pos_conv_embed.conv.weight_{letter}": f"encoder.positions.{name}"  # as older versions wrote it
    for letter, name in (("g", "length"), ("v", "direction"))
}
_KINDS = (".weight", ".bias", "")


def to_transformers(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights of a `Wav2Vec2Pretraining` under the names of `Wav2Vec2ForPreTraining`; others keep theirs."""
    return {
        _renamed(name, _OURS_TO_THEIRS, name): tensor.flatten(0, 1)[None] if name == "quantizer.entries" else tensor
        for name, tensor in weights.items()
    }


def from_transformers(weights: Mapping[str, Tensor], num_groups: int) -> dict[str, Tensor]:
    """Weights of any wav2vec 2.0 of theirs under our names; heads for other tasks are left out."""
    is_bare = not any(name.startswith("wav2vec2.") for name in weights)
    found = {}
    for name, tensor in weights.items():
        ours = _renamed(f"wav2vec2.{name}" if is_bare else name, _THEIRS_TO_OURS, "")
        if ours == "quantizer.entries":
            found[ours] = tensor.reshape(num_groups, -1, tensor.shape[-1])
        elif ours:
            found[ours] = tensor
    return found


def own_weights(weights: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """What `to_transformers` renamed, back; `config` is that of the bundle."""
    known = from_transformers(weights, config.get("quantizer", {}).get("num_groups", 1))
    return {name: weights[name] for name in weights if not _renamed(name, _THEIRS_TO_OURS, "")} | known


def pretraining_config(values: Mapping[str, Any], where: str, *, normalize: bool = True) -> Wav2Vec2PretrainingConfig:
    """What their config.json describes; `normalize` is `do_normalize` of the preprocessor_config.json beside it."""
    known = _defaults() | dict(values)
    for name, required in _ONLY.items():
        if known.get(name) != required:
            problem = f"'{name}' is {known.get(name)!r}; here it can only be {required!r}."
            raise ConfigError(where, problem, "Use another checkpoint.")
    norm = known["feat_extract_norm"]
    encoder = Wav2Vec2Config(
        convolutions=ConvolutionsConfig(
            widths=tuple(known["conv_dim"]),
            kernels=tuple(known["conv_kernel"]),
            strides=tuple(known["conv_stride"]),
            norm=norm,
            bias=known["conv_bias"],
        ),
        transformer=TransformerConfig(norm_first=known["do_stable_layer_norm"], **_values(known, _TRANSFORMER)),
        normalize=normalize,
        **_values(known, _REST),
    )
    quantizer = ProductQuantizerConfig(**_values(known, _QUANTIZER))
    return Wav2Vec2PretrainingConfig(encoder=encoder, quantizer=quantizer, compared_width=known["proj_codevector_dim"])


def transformers_config(config: Wav2Vec2PretrainingConfig) -> dict[str, Any]:
    """The config.json with which `Wav2Vec2ForPreTraining.from_pretrained` takes the weights."""
    encoder, convolutions = config.encoder, config.encoder.convolutions
    return {
        "architectures": ["Wav2Vec2ForPreTraining"],
        "model_type": "wav2vec2",
        "conv_dim": list(convolutions.widths),
        "conv_kernel": list(convolutions.kernels),
        "conv_stride": list(convolutions.strides),
        "num_feat_extract_layers": len(convolutions.widths),
        "feat_extract_norm": convolutions.norm,
        "conv_bias": convolutions.bias,
        "do_stable_layer_norm": encoder.transformer.norm_first,
        "proj_codevector_dim": config.compared_width,
        **_ONLY,
        **{theirs: getattr(encoder.transformer, ours) for ours, theirs in _TRANSFORMER.items()},
        **{theirs: getattr(encoder, ours) for ours, theirs in _REST.items()},
        **{theirs: getattr(config.quantizer, ours) for ours, theirs in _QUANTIZER.items()},
    }


def preprocessor_config(config: Wav2Vec2Config) -> dict[str, Any]:
    """Their preprocessor_config.json: a group norm must not see their padding, so no mask goes with it."""
    return {
        "feature_extractor_type": "Wav2Vec2FeatureExtractor",
        "sampling_rate": 16000,
        "feature_size": 1,
        "padding_side": "right",
        "padding_value": 0.0,
        "do_normalize": config.normalize,
        "return_attention_mask": config.convolutions.norm == "layer",
    }


_TRANSFORMER = {
    "width": "hidden_size",
    "hidden_width": "intermediate_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "dropout": "hidden_dropout",
    "attention_dropout": "attention_dropout",
    "hidden_dropout": "activation_dropout",
    "layer_drop": "layerdrop",
}
_REST = {
    "projection_dropout": "feat_proj_dropout",
    "position_kernel": "num_conv_pos_embeddings",
    "position_groups": "num_conv_pos_embedding_groups",
}
_QUANTIZER = {
    "num_groups": "num_codevector_groups",
    "num_entries": "num_codevectors_per_group",
    "width": "codevector_dim",
    "dropout": "feat_quantizer_dropout",
}
_ONLY = {
    "hidden_act": "gelu",
    "feat_extract_activation": "gelu",
    "layer_norm_eps": 1e-5,
    "add_adapter": False,
    "adapter_attn_dim": None,
}


def _values(known: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {ours: known[theirs] for ours, theirs in names.items()}


def _defaults() -> dict[str, Any]:
    """What their config.json leaves out because it is their default: the published base, without a bias."""
    base = Wav2Vec2PretrainingConfig()
    return transformers_config(replace(base, encoder=replace(base.encoder, normalize=True)))


def _renamed(name: str, names: Mapping[str, str], otherwise: str) -> str:
    numbers = re.findall(r"\.(\d+)\.", name)
    pattern = re.sub(r"\.\d+\.", ".#.", name)
    for kind in _KINDS:
        if pattern.endswith(kind) and (found := names.get(pattern.removesuffix(kind))):
            return (found + kind).replace("#", numbers[0]) if numbers else found + kind
    return otherwise
