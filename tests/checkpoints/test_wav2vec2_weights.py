"""Weights of wav2vec 2.0 travel both ways."""

from __future__ import annotations

import json

import pytest
import torch
from original_wav2vec2 import NORMS, config_of, original, same

from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.checkpoints.tensors import write_tensors
from sonant.checkpoints.wav2vec2_weights import (
    from_transformers,
    preprocessor_config,
    pretraining_config,
    to_transformers,
    transformers_config,
)
from sonant.models.wav2vec2_pretraining import Wav2Vec2Pretraining, pretraining_size


@pytest.mark.parametrize("norm", NORMS)
def test_there_and_back_is_the_same_to_the_bit(norm):
    theirs = original(norm)
    back = to_transformers(same(theirs).state_dict())
    assert back.keys() == theirs.state_dict().keys()
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(back[name], tensor), name


@pytest.mark.parametrize("name", ["tiny", "base", "large"])
def test_a_config_there_and_back_is_the_same(name):
    config = pretraining_size(name)
    found = pretraining_config(json.loads(json.dumps(transformers_config(config))), "config.json")
    assert transformers_config(found) == transformers_config(config)
    assert found.quantizer == config.quantizer
    assert found.encoder.transformer == config.encoder.transformer


@pytest.mark.parametrize("kind", ["Wav2Vec2ForPreTraining", "Wav2Vec2Model", "Wav2Vec2ForCTC"])
def test_what_we_write_loads_in_transformers_with_equal_frames(kind, tmp_path):
    import transformers

    torch.manual_seed(0)
    ours = Wav2Vec2Pretraining(pretraining_size("tiny")).eval()
    write_tensors(str(tmp_path / "model.safetensors"), to_transformers(ours.state_dict()))
    (tmp_path / "config.json").write_text(json.dumps(transformers_config(ours.config)))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(preprocessor_config(ours.config.encoder)))
    theirs, told = getattr(transformers, kind).from_pretrained(tmp_path, output_loading_info=True)
    assert {name for name in told["missing_keys"] if not name.startswith("lm_head")} == set()
    listener = transformers.AutoFeatureExtractor.from_pretrained(tmp_path)
    waveform = 0.1 * torch.randn(8000)
    values = listener(waveform.numpy(), sampling_rate=16000, return_tensors="pt").input_values
    encoder = theirs if kind == "Wav2Vec2Model" else theirs.wav2vec2
    with torch.no_grad():
        wanted = encoder.eval()(values).last_hidden_state
        frames = ours.encoder(waveform[None], Lengths(torch.tensor([8000]))).frames
    torch.testing.assert_close(frames, wanted, rtol=0, atol=1e-5)


def test_heads_of_other_tasks_are_left_out_and_bare_models_and_older_names_are_understood():
    theirs = original("layer")
    weights = theirs.wav2vec2.state_dict()
    bare = from_transformers({**weights, "lm_head.weight": torch.zeros(2, 2)}, 2)
    wanted = {f"encoder.{name}" for name in same(theirs).encoder.state_dict()}
    assert bare.keys() == wanted
    older = {name.replace("parametrizations.weight.original0", "weight_g"): t for name, t in weights.items()}
    older = {name.replace("parametrizations.weight.original1", "weight_v"): t for name, t in older.items()}
    assert older.keys() != weights.keys()
    found = from_transformers(older, 2)
    assert found.keys() == wanted
    assert all(torch.equal(found[name], bare[name]) for name in wanted)


@pytest.mark.parametrize(("key", "value"), [("hidden_act", "relu"), ("add_adapter", True), ("adapter_attn_dim", 8)])
def test_what_we_could_not_compute_is_refused_by_name(key, value):
    values = original("layer").config.to_dict() | {key: value}
    with pytest.raises(ConfigError, match=f"some/config.json: '{key}' is {value!r}; here it can only be"):
        pretraining_config(values, "some/config.json")


def test_what_a_config_leaves_out_is_their_default():
    from transformers import Wav2Vec2Config

    assert pretraining_config({}, "config.json") == pretraining_config(Wav2Vec2Config().to_dict(), "config.json")
    assert config_of(original("group")).encoder.convolutions.norm == "group"
