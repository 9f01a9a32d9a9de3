"""Recognisers that write: the numbers of transformers, utterance by utterance, whatever stands beside it."""

from __future__ import annotations

import json

import pytest
import torch
from small_writers import (
    BOS,
    EOS,
    FAMILIES,
    SETTINGS,
    VOCABULARY,
    encoded,
    inputs_of_theirs,
    small_writer,
    theirs_of,
    utterances,
)
from transformers import AutoConfig, AutoModelForSpeechSeq2Seq

from sonant.base.errors import SonantError
from sonant.models.causal_lora import LoraConfig
from sonant.models.writer import WriterConfig, build, description, limits_of, new_model


def logits(model, batch, tokens):
    return model(batch.waveforms, batch.lengths, tokens, lambda hidden, head: head(hidden))


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_of_a_batch_are_those_of_transformers_alone(family):
    model, batch = small_writer(family), utterances()
    theirs = theirs_of(model)
    tokens = torch.randint(3, VOCABULARY, (len(batch), 7))
    found = logits(model, batch, tokens)
    for row, count in enumerate(batch.lengths.values.tolist()):
        given = inputs_of_theirs(family, batch.waveforms[row, :count])
        expected = theirs(**given, decoder_input_ids=tokens[row : row + 1]).logits[0]
        torch.testing.assert_close(found[row], expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_an_utterance_in_a_batch_is_written_as_alone_however_short(family):
    model, batch = small_writer(family), utterances((9000, 16000, 700, 1))
    tokens = torch.randint(3, VOCABULARY, (len(batch), 5))
    found = logits(model, batch, tokens)
    assert found.isfinite().all()
    for row in range(len(batch)):
        alone = logits(model, batch.select([row]), tokens[row : row + 1])[0]
        torch.testing.assert_close(found[row], alone, rtol=1e-4, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("training", [False, True])
def test_what_comes_later_changes_no_token_before(family, training):
    model, batch = small_writer(family).train(training), utterances((9000,))
    tokens = torch.randint(3, VOCABULARY, (1, 6))
    others = tokens.clone()
    others[0, 4:] = (others[0, 4:] + 1) % VOCABULARY
    one, other = logits(model, batch, tokens), logits(model, batch, others)
    torch.testing.assert_close(one[:, :4], other[:, :4])
    assert not torch.allclose(one[:, 4:], other[:, 4:])


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_written_piece_by_piece_is_written_at_once(family):
    model, batch = small_writer(family), utterances()
    tokens = torch.randint(3, VOCABULARY, (len(batch), 7))
    memory, parts = None, []
    for part in tokens.split([3, 1, 1, 2], dim=1):
        hidden, memory = model.write(part, *encoded(model, batch), memory, remembers=True)
        parts.append(model.proj_out(hidden))
    torch.testing.assert_close(torch.cat(parts, dim=1), logits(model, batch, tokens), rtol=1e-4, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_is_built_again_from_its_description_and_weights(family):
    model, batch = small_writer(family), utterances()
    again = build(json.loads(json.dumps(description(model)))).eval()
    again.load_state_dict(model.state_dict())
    tokens = torch.randint(3, VOCABULARY, (len(batch), 4))
    assert torch.equal(logits(again, batch, tokens), logits(model, batch, tokens))


@pytest.mark.parametrize("family", FAMILIES)
def test_adapters_are_all_that_learns(family, tmp_path):
    AutoModelForSpeechSeq2Seq.from_config(AutoConfig.for_model(family, **SETTINGS[family])).save_pretrained(tmp_path)
    model = new_model(WriterConfig(folder=str(tmp_path), lora=LoraConfig(rank=2)), VOCABULARY, {}).train()
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert all("lora" in name for name in learning)
    assert {name.split(".")[1] for name in learning} == {"encoder", "decoder"}
    batch = utterances()
    logits(model, batch, torch.randint(3, VOCABULARY, (len(batch), 5))).square().mean().backward()
    assert all(parameter.grad is not None for parameter in model.parameters() if parameter.requires_grad)


@pytest.mark.parametrize("family", FAMILIES)
def test_recomputing_layers_changes_no_gradient(family):
    def gradients(*, is_checkpointed: bool):
        model, batch = small_writer(family).train(), utterances()
        if is_checkpointed:
            model.gradient_checkpointing_enable()
        torch.manual_seed(0)
        logits(model, batch, torch.randint(3, VOCABULARY, (len(batch), 5))).square().mean().backward()
        return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}

    plain, again = gradients(is_checkpointed=False), gradients(is_checkpointed=True)
    assert plain.keys() == again.keys()
    for name, gradient in plain.items():
        torch.testing.assert_close(again[name], gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_dropout_learns_and_is_off_afterwards(family):
    rates = {"attention_dropout": 0.3} | ({} if family == "moonshine" else {"dropout": 0.2, "activation_dropout": 0.1})
    model, batch = small_writer(family, **rates), utterances()
    tokens = torch.randint(3, VOCABULARY, (len(batch), 5))
    one, other = (logits(model.train(), batch, tokens) for _ in range(2))
    assert not torch.equal(one, other)
    one.square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    assert torch.equal(logits(model.eval(), batch, tokens), logits(model, batch, tokens))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rate", [0.0, 0.2])
def test_half_precision_is_near_whole_precision(family, rate):
    model, batch = small_writer(family, attention_dropout=rate), utterances()
    tokens = torch.randint(3, VOCABULARY, (len(batch), 5))
    whole = logits(model, batch, tokens)
    with torch.autocast("cpu", torch.bfloat16):
        half = logits(model, batch, tokens)
        logits(model.train(), batch, tokens).float().square().mean().backward()
    assert (half.float() - whole).abs().mean() < 0.1 * whole.abs().mean()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_what_is_behind_some_layers_has_no_influence_on_them():
    model, batch = small_writer("moonshine"), utterances()
    behind = model.behind(1)
    heard = model.deeper(model.hear(batch.waveforms, batch.lengths), 1).frames
    heard.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is None) == name.startswith(behind), name


def test_limits_are_those_of_positions():
    assert limits_of(small_writer("whisper")).most_seconds == 2.0
    assert limits_of(small_writer("moonshine")).most_seconds is None
    assert limits_of(small_writer("whisper")).most_tokens == 65


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (WriterConfig(settings={"hidden_sizes": 3}), "hidden_size"),
        (WriterConfig(folder="nowhere"), "config.json is missing"),
        (WriterConfig(settings=SETTINGS["moonshine"], dropout=0.1), "no such dropout"),
    ],
)
def test_a_mistake_is_told_by_its_key(config, told):
    with pytest.raises(SonantError) as error:
        new_model(config, VOCABULARY, {"bos": BOS, "eos": EOS, "pad": 0})
    assert told in str(error.value)


def test_an_encoder_alone_or_a_tokenizer_too_large_is_told(tmp_path):
    from transformers import AutoModel

    config = AutoConfig.for_model("whisper", **SETTINGS["whisper"])
    AutoModel.from_config(config).encoder.save_pretrained(tmp_path / "half")
    with pytest.raises(SonantError, match="missing"):
        new_model(WriterConfig(folder=str(tmp_path / "half")), VOCABULARY, {})
    AutoModelForSpeechSeq2Seq.from_config(config).save_pretrained(tmp_path / "whole")
    with pytest.raises(SonantError, match="symbols"):
        new_model(WriterConfig(folder=str(tmp_path / "whole")), 60000, {})
