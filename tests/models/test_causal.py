"""Causal language models: those of transformers, under their names, both ways."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from sonant.base.errors import ConfigError, SonantError
from sonant.batches.collate import collate_tokens
from sonant.models.causal import CausalConfig, build, load_model, max_positions, new_model
from sonant.models.causal_lora import LoraConfig, merged
from sonant.objectives.next_token import NextToken

SMALL = {"n_embd": 32, "n_layer": 2, "n_head": 2}


@pytest.fixture
def folder(tmp_path) -> str:
    """A GPT-2 of transformers' own making."""
    torch.manual_seed(0)
    network = GPT2LMHeadModel(GPT2Config(vocab_size=40, n_positions=32, **SMALL))
    network.save_pretrained(tmp_path / "gpt2")
    return str(tmp_path / "gpt2")


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(input_ids=torch.arange(20)[None]).logits


def batch() -> object:
    return collate_tokens([[np.arange(20)], [np.arange(15) + 20]], ["a", "b"])


def test_a_folder_of_transformers_gives_the_same_answers(folder):
    ours = load_model(CausalConfig(folder=folder))
    torch.testing.assert_close(logits(ours), logits(AutoModelForCausalLM.from_pretrained(folder)))


def test_weights_bear_the_names_of_transformers(folder):
    theirs = AutoModelForCausalLM.from_pretrained(folder)
    ours = load_model(CausalConfig(folder=folder))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    rebuilt = build(ours.config.to_dict())
    rebuilt.load_state_dict(ours.state_dict())
    torch.testing.assert_close(logits(rebuilt), logits(theirs))


SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
LOCAL = SIZES | {"num_key_value_heads": 2, "sliding_window": 4}


@pytest.mark.parametrize(("architecture", "settings"), [("gpt2", SMALL), ("mistral", LOCAL)])
@pytest.mark.parametrize("dropout", [0.0, 1e-9])
def test_a_short_way_through_attention_ends_where_the_long_one_does(architecture, settings, dropout):
    torch.manual_seed(0)
    model = new_model(CausalConfig(architecture=architecture, settings=settings), 40, 32, {})
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = dropout
    tokens, mask = torch.arange(20).repeat(2, 1), torch.ones(2, 20, dtype=torch.int64)
    mask[1, :5] = 0  # padding before a row, as some tokenizers make it
    with torch.autocast("cpu", torch.bfloat16):
        learning = model.train()(input_ids=tokens, attention_mask=mask).logits
        with torch.no_grad():
            answering = model.eval()(input_ids=tokens, attention_mask=mask).logits
    is_real = mask.bool()
    torch.testing.assert_close(learning[is_real].float(), answering[is_real].float(), rtol=0.05, atol=0.02)


def test_a_model_from_scratch_starts_as_that_of_transformers_does():
    torch.manual_seed(3)
    ours = new_model(CausalConfig(settings=SMALL), 40, 32, {"eos": 1})
    torch.manual_seed(3)
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=40, n_positions=32, eos_token_id=1, **SMALL))
    for found, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert (max_positions(ours), ours.config.eos_token_id) == (32, 1)


@pytest.mark.parametrize("chance", ["resid_pdrop", "embd_pdrop", "attn_pdrop"])
def test_every_dropout_acts_in_training_and_only_there(chance):
    off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    torch.manual_seed(0)
    model = new_model(CausalConfig(settings=SMALL | off | {chance: 0.5}), 40, 32, {})
    ask = {"input_ids": torch.arange(20)[None]}
    assert not torch.equal(model.train()(**ask).logits, model(**ask).logits)
    assert torch.equal(model.eval()(**ask).logits, model(**ask).logits)


def test_attention_with_dropout_means_what_it_means_without():
    torch.manual_seed(0)
    config = CausalConfig(settings=SMALL | {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.2, "n_layer": 1})
    model = new_model(config, 40, 32, {})
    with torch.no_grad():
        model.transformer.h[0].attn.c_attn.weight.mul_(30)
    attention, hidden = model.transformer.h[0].attn, torch.randn(1, 20, 32)
    with torch.no_grad():
        mean = torch.stack([attention.train()(hidden)[0] for _ in range(2000)]).mean(0)
        expected = attention.eval()(hidden)[0]
    assert not torch.equal(attention.train()(hidden)[0], expected)
    torch.testing.assert_close(mean, expected, rtol=0, atol=0.05 * float(expected.detach().abs().max()))


@pytest.mark.parametrize("is_own", [True, False])
def test_adapters_learn_alone_and_merge_into_plain_weights(folder, is_own):
    targets = ("c_attn", "c_proj") if is_own else ()
    model = load_model(CausalConfig(folder=folder, lora=LoraConfig(rank=2, targets=targets)))
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learning
    assert all(".lora_" in name for name in learning)
    before = logits(model)
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        NextToken()(model.train(), batch(), 0).parts["next_token"].total.backward()
        optimizer.step()
    after = logits(model)
    assert (after - before).abs().max() > 0.01
    plain = AutoModelForCausalLM.from_pretrained(folder)
    plain.load_state_dict(merged(model, model.state_dict()))
    torch.testing.assert_close(logits(plain), after, rtol=1e-4, atol=1e-4)


def test_gradient_checkpointing_changes_no_gradient(folder):
    found = []
    for is_on in (False, True):
        model = load_model(CausalConfig(folder=folder)).train()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        if is_on:
            model.gradient_checkpointing_enable()
        NextToken()(model, batch(), 0).parts["next_token"].total.backward()
        found.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(*found)


def test_weights_may_be_bf16(folder):
    model = load_model(CausalConfig(folder=folder, dtype="bf16"))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    loss = NextToken()(model, batch(), 0).parts["next_token"].total
    assert loss.dtype == torch.float32
    loss.backward()


def test_embeddings_grow_with_the_tokenizer_and_never_shrink(folder):
    assert load_model(CausalConfig(folder=folder), 45).get_input_embeddings().weight.shape[0] == 45
    assert load_model(CausalConfig(folder=folder), 30).get_input_embeddings().weight.shape[0] == 40


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architecture": "gtp2"}, "knows no causal language model 'gtp2'. Did you mean 'gpt2'"),
        ({"settings": {"n_layers": 2}}, "settings.n_layers: 'gpt2' has no such setting"),
        ({"settings": {"n_embd": 33, "n_head": 2}}, "settings: "),
        ({"architecture": "gemma2", "settings": SMALL}, "settings.n_embd"),
    ],
)
def test_a_config_that_makes_no_sense_is_told(config, message):
    with pytest.raises(ConfigError) as caught:
        new_model(CausalConfig(**config), 40, 32, {})
    assert message in str(caught.value)


def test_what_contradicts_itself_is_refused():
    with pytest.raises(ConfigError, match="settings are those of a model from scratch"):
        CausalConfig(folder="x", settings={"n_layer": 1})
    with pytest.raises(ConfigError, match="adapters need a model that has learnt"):
        CausalConfig(lora=LoraConfig())


def test_a_folder_without_a_model_is_told(tmp_path):
    with pytest.raises(SonantError, match=r"config\.json is missing"):
        load_model(CausalConfig(folder=str(tmp_path)))


def test_an_adapter_for_nothing_is_told(folder):
    with pytest.raises(ConfigError, match="Choose from"):
        load_model(CausalConfig(folder=folder, lora=LoraConfig(targets=("q_proj",))))
