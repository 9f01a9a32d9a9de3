"""What stays as it is and what begins later, in every family of recognisers, by names that are checked."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.models.ctc import FAMILIES, EncoderConfig, new_model
from sonant.recipes.freezing import beginnings, freeze, freeze_front_end

COMMON = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24}
WAVEFORM = COMMON | {"conv_dim": (8,) * 7, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}
MOONSHINE = {"hidden_size": 16, "intermediate_size": 24, "encoder_num_hidden_layers": 3}
MOONSHINE |= {"encoder_num_attention_heads": 2, "decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 2}
WHISPER = {"d_model": 16, "encoder_layers": 3, "encoder_attention_heads": 2, "encoder_ffn_dim": 24, "num_mel_bins": 16}
WHISPER |= {"decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 24, "max_source_positions": 100}
SETTINGS = dict.fromkeys(FAMILIES, WAVEFORM) | {
    "data2vec-audio": WAVEFORM | {"num_conv_pos_embeddings": 3, "conv_pos_kernel_size": 9},
    "sew": WAVEFORM | {"conv_kernel": (10, 3, 3, 3, 3, 2, 2), "conv_stride": (5, 2, 2, 2, 2, 2, 2)},
    "wav2vec2-bert": COMMON,
    "moonshine": MOONSHINE,
    "whisper": WHISPER,
}
every_family = pytest.mark.parametrize("family", FAMILIES)


def made(family: str) -> nn.Module:
    torch.manual_seed(0)
    return new_model(EncoderConfig(family=family, settings=SETTINGS[family]), 9, 0, hides_frames=False)[0]


def learning(model: nn.Module) -> set[str]:
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def encoder_of(model: nn.Module) -> str:
    return next(name for name, _ in model.named_modules() if name.endswith("encoder"))


@every_family
def test_a_frozen_front_end_is_all_that_hears_and_nothing_else(family):
    model = made(family)
    before = learning(model)
    heard = model.hear(torch.randn(2, 8000), Lengths(torch.tensor([8000, 6000])))
    if heard.frames.requires_grad:
        heard.frames.square().sum().backward()
    hearing = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    freeze_front_end(model)
    assert before - learning(model) == hearing
    assert bool(hearing) == (family != "wav2vec2-bert")


@every_family
def test_layers_are_frozen_by_a_range_and_no_others_are(family):
    model = made(family)
    layers = f"{encoder_of(model)}.layers"
    before = learning(model)
    freeze(model, [f"{layers}.0-1"])
    assert before - learning(model) == {name for name in before if name.startswith((f"{layers}.0.", f"{layers}.1."))}


@every_family
def test_what_begins_later_is_named_with_its_step_and_never_what_is_frozen(family):
    model = made(family)
    encoder = encoder_of(model)
    freeze(model, [f"{encoder}.layers.0"])
    found = beginnings(model, {encoder: 3, f"{encoder}.layers.2": 7})
    assert {found[name] for name in found if f"{encoder}.layers.2." in name} == {7}
    assert {found[name] for name in found if f"{encoder}.layers.1." in name} == {3}
    assert not any(f"{encoder}.layers.0." in name or name.startswith("lm_head") for name in found)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("wav2vec.encoder", r"'wav2vec.encoder'.*Did you mean 'wav2vec2.encoder'\?"),
        ("wav2vec2.encoder.layer.0", r"Did you mean 'wav2vec2.encoder.layers.0'\?"),
        ("wav2vec2.encoder.layers.0-5", r"'wav2vec2.encoder.layers.3' \(of 'wav2vec2.encoder.layers.0-5'\)"),
        ("wav2vec2.encoder.layers.2-1", r"'wav2vec2.encoder.layers.2-1'"),
        ("*.weigth", r"'\*.weigth'"),
    ],
)
def test_a_name_that_fits_nothing_is_told_with_the_nearest(name, told):
    model = made("wav2vec2")
    for ask in (lambda: freeze(model, [name]), lambda: beginnings(model, {name: 3})):
        with pytest.raises(ConfigError, match=told):
            ask()
