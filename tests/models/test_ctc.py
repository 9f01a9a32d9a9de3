"""Recognisers on encoders of transformers: the numbers of theirs, utterance by utterance, whatever stands beside it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForCTC, SeamlessM4TFeatureExtractor, WhisperFeatureExtractor

from sonant.audio.features.utterance import normalized
from sonant.base.errors import SonantError
from sonant.base.lengths import Lengths
from sonant.layers.conformer import ConformerLayerConfig
from sonant.models.causal_lora import LoraConfig, merged
from sonant.models.conformer import Conformer, ConformerConfig
from sonant.models.ctc import FAMILIES, EncoderConfig, build, description, new_model
from sonant.models.recognizer import Heard, Hidden

VOCABULARY = 20
COMMON = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "conv_dim": (16,) * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
MOONSHINE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "encoder_num_hidden_layers": 2,
    "encoder_num_attention_heads": 4,
    "decoder_num_hidden_layers": 1,
    "decoder_num_attention_heads": 4,
}
WHISPER = {
    "d_model": 32,
    "encoder_layers": 2,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_layers": 1,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 48,
    "num_mel_bins": 20,
    "max_source_positions": 100,
}
SEW = COMMON | {"conv_kernel": (10, 3, 3, 3, 3, 2, 2), "conv_stride": (5, 2, 2, 2, 2, 2, 2), "squeeze_factor": 2}
BERT = {name: value for name, value in COMMON.items() if not name.startswith(("conv_dim", "num_conv"))}
SETTINGS = {
    "wav2vec2": COMMON,
    "wav2vec2-conformer": COMMON | {"conv_depthwise_kernel_size": 7},
    "hubert": COMMON,
    "wavlm": COMMON,
    "data2vec-audio": COMMON | {"num_conv_pos_embeddings": 3, "conv_pos_kernel_size": 9},
    "unispeech": COMMON,
    "unispeech-sat": COMMON,
    "sew": SEW,
    "wav2vec2-bert": BERT | {"conv_depthwise_kernel_size": 7},
    "moonshine": MOONSHINE,
    "whisper": WHISPER,
}
LAYER_NORM = {"feat_extract_norm": "layer", "conv_bias": True}
VARIANTS = [(family, {}) for family in FAMILIES] + [
    ("wav2vec2", LAYER_NORM | {"do_stable_layer_norm": True}),
    ("wav2vec2-conformer", {"position_embeddings_type": "rotary"}),
    ("wavlm", LAYER_NORM | {"do_stable_layer_norm": True}),
    ("hubert", {"conv_pos_batch_norm": True}),
    ("unispeech", LAYER_NORM | {"do_stable_layer_norm": True}),
    ("sew", LAYER_NORM),
]
SAMPLES = (9000, 16000, 5123, 12345)


def config_for(family: str, **others) -> EncoderConfig:
    return EncoderConfig(family=family, settings=SETTINGS[family] | others)


def made(family: str, **others) -> nn.Module:
    """A model whose every weight matters."""
    torch.manual_seed(0)
    model, _ = new_model(config_for(family, **others), VOCABULARY, 0, hides_frames=True)
    return stirred(model).eval()


@torch.no_grad()
def stirred(model: nn.Module) -> nn.Module:
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_()
        if name.endswith("running_var"):
            buffer.uniform_(0.5, 2)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            parameter.normal_(0.5 if "norm" in name and name.endswith("weight") else 0.0, 0.3)
    return model


def waveforms(lengths=SAMPLES) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(num_samples, generator=generator) * 0.1 for num_samples in lengths]


def batch_of(rows: list[Tensor]) -> tuple[Tensor, Lengths]:
    """Padded with noise, which must not matter."""
    padded = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lengths = Lengths(torch.tensor([len(row) for row in rows]))
    return padded.where(lengths.mask(padded.shape[1]), torch.randn(padded.shape)), lengths


def theirs(model: nn.Module, waveform: Tensor) -> Tensor:
    """What transformers answers to one utterance without padding."""
    settings = copy.deepcopy(model.config)
    if settings.model_type in ("moonshine", "whisper"):
        encoder = AutoModel.from_config(settings).encoder.eval()
        encoder.load_state_dict(model.encoder.state_dict())
        if settings.model_type == "moonshine":
            return model.lm_head(encoder(waveform[None]).last_hidden_state)[0]
        extractor = WhisperFeatureExtractor(feature_size=settings.num_mel_bins, chunk_length=2)
        features = extractor(waveform.numpy(), sampling_rate=16000, return_tensors="pt").input_features
        return model.lm_head(encoder(features).last_hidden_state)[0]
    network = AutoModelForCTC.from_config(settings).eval()
    network.load_state_dict(model.state_dict())
    if settings.model_type == "wav2vec2-bert":
        return network(
            **SeamlessM4TFeatureExtractor()(waveform.numpy(), sampling_rate=16000, return_tensors="pt")
        ).logits[0]
    return network(normalized(waveform[None], torch.tensor([len(waveform)]))).logits[0]


@torch.no_grad()
@pytest.mark.parametrize(("family", "others"), VARIANTS)
def test_a_batch_scores_each_utterance_as_transformers_does_alone(family, others):
    model, rows = made(family, **others), waveforms()
    scores = model(*batch_of(rows))
    for row, waveform in enumerate(rows):
        num_frames = model.num_frames(len(waveform))
        assert num_frames == scores.lengths.values[row]
        expected = theirs(model, waveform)
        if family not in ("wav2vec2-bert", "whisper"):  # these count frames of padding, too
            assert num_frames == len(expected)
        torch.testing.assert_close(scores.logits[row, :num_frames], expected[:num_frames], rtol=1e-4, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_utterances_of_a_frame_or_none_disturb_nobody(family):
    model, rows = made(family), waveforms((8000, 400, 100, 0))
    together = model(*batch_of(rows))
    alone = model(*batch_of(rows[:1]))
    num_frames = int(alone.lengths.values[0])
    torch.testing.assert_close(together.logits[0, :num_frames], alone.logits[0], rtol=1e-4, atol=1e-5)
    assert together.logits.isfinite().all()
    assert together.lengths.values[3] == 0
    assert model(*batch_of(rows[2:])).logits.isfinite().all()
    empty = model(torch.zeros(0, 100), Lengths(torch.zeros(0, dtype=torch.int64)))
    assert len(empty.logits) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradient_of_a_batch_is_the_sum_of_those_of_its_utterances(family):
    model, rows = made(family), waveforms()

    def gradient(part: list[Tensor]) -> dict[str, Tensor]:
        model.zero_grad()
        scores = model(*batch_of(part))
        is_real = scores.lengths.mask(scores.logits.shape[1])
        scores.logits[is_real].square().sum().backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    together = gradient(rows)
    alone = [gradient([row]) for row in rows]
    largest = max(float(found.abs().max()) for found in together.values())
    for name, found in together.items():
        expected = sum(one[name] for one in alone)
        # A bias of keys has no gradient but for rounding.
        tolerance = 2e-4 * float(expected.abs().max()) + 1e-6 * largest
        torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_hidden_changes_the_scores_of_its_utterance_alone(family):
    model, rows = made(family), waveforms()
    heard = model.hear(*batch_of(rows))
    frames = torch.zeros(heard.frames.shape[:2], dtype=torch.bool)
    frames[1, 3:8] = True
    bands = torch.zeros(len(rows), model.hidden_width, dtype=torch.bool)
    bands[2, 2:9] = True
    before, after = model.score(heard), model.score(heard, Hidden(frames, bands))
    differs = [not torch.allclose(a, b, atol=1e-6) for a, b in zip(before.logits, after.logits, strict=True)]
    assert differs == [False, True, True, False]


@torch.no_grad()
@pytest.mark.parametrize(("family", "others"), VARIANTS)
@pytest.mark.parametrize("num_layers", [0, 1, 2])
def test_what_layers_made_of_each_utterance_alone_is_gone_on_from_in_a_batch(family, others, num_layers):
    model, rows = made(family, **others), waveforms()
    check_going_on(model, rows, num_layers)


@torch.no_grad()
def check_going_on(model: nn.Module, rows: list[Tensor], num_layers: int) -> None:
    parts = [model.deeper(model.hear(*batch_of([row])), num_layers) for row in rows]
    assert [part.lengths.longest for part in parts] == [model.num_inside(len(row)) for row in rows]
    frames = [part.frames[0, : part.lengths.longest] for part in parts]
    lengths = Lengths(torch.tensor([len(part) for part in frames]))
    scored = Lengths(torch.tensor([model.num_frames(len(row)) for row in rows]))
    heard = Heard(nn.utils.rnn.pad_sequence(frames, batch_first=True), lengths, scored, num_layers)
    found, expected = model.score(heard), model(*batch_of(rows))
    assert torch.equal(found.lengths.values, expected.lengths.values)
    is_real = scored.mask(found.logits.shape[1])
    torch.testing.assert_close(found.logits[is_real], expected.logits[is_real], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("num_layers", [0, 1, 2])
def test_parameters_behind_some_layers_are_those_that_these_do_not_need(family, num_layers):
    check_behind(made(family), num_layers)


def check_behind(model: nn.Module, num_layers: int) -> None:
    """By gradients; the positions of a Conformer of Hugging Face, and vectors for hidden frames, lead nowhere."""
    model.zero_grad()
    deeper = model.deeper(model.hear(*batch_of(waveforms())), num_layers)
    deeper.frames.square().sum().backward()
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    needed = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    behind = {name for name in names if name.startswith(model.behind(num_layers))}
    assert not needed & behind
    left = names - needed - behind
    assert all("pos_conv_embed" in name or "rel_attn_embed" in name for name in left)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_is_built_again_from_its_description_and_weights(family):
    model = made(family)
    again = build(json.loads(json.dumps(description(model)))).eval()
    again.load_state_dict(model.state_dict())
    batch = batch_of(waveforms())
    torch.testing.assert_close(again(*batch).logits, model(*batch).logits)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_of_transformers_keeps_its_encoder_and_gets_a_new_head(family, tmp_path):
    torch.manual_seed(3)
    base = AutoModel.from_config(AutoConfig.for_model(family, **SETTINGS[family]))
    base.save_pretrained(tmp_path)
    model, missing = new_model(EncoderConfig(folder=str(tmp_path)), VOCABULARY, 0, hides_frames=False)
    assert set(missing) == {"lm_head.weight", "lm_head.bias"}
    own = model.state_dict()
    kept = base.encoder.state_dict()
    prefix = "" if family in ("moonshine", "whisper") else f"{model.base_model_prefix}."
    assert kept
    assert all(torch.equal(own[f"{prefix}encoder.{name}"], tensor) for name, tensor in kept.items())


def test_a_fine_tuned_checkpoint_keeps_its_head_where_the_vocabulary_is_the_same(tmp_path):
    torch.manual_seed(3)
    AutoModelForCTC.from_config(AutoConfig.for_model("hubert", vocab_size=VOCABULARY, **COMMON)).save_pretrained(
        tmp_path
    )
    assert new_model(EncoderConfig(folder=str(tmp_path)), VOCABULARY, 0, hides_frames=True)[1] == []
    other, missing = new_model(EncoderConfig(folder=str(tmp_path)), VOCABULARY + 1, 0, hides_frames=True)
    assert missing == ["lm_head.bias", "lm_head.weight"]
    assert other.lm_head.out_features == VOCABULARY + 1


@pytest.mark.parametrize("family", FAMILIES)
def test_adapters_and_the_head_are_all_that_learns_and_merge_into_plain_weights(family, tmp_path):
    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model(family, **SETTINGS[family])).save_pretrained(tmp_path)
    config = EncoderConfig(folder=str(tmp_path), lora=LoraConfig(rank=2))
    model, _ = new_model(config, VOCABULARY, 0, hides_frames=False)
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert all("lora" in name or name.startswith("lm_head") for name in learning)
    for number in range(2):  # attention's four, feed-forward's two, in both layers; Conformers have more
        assert sum("lora_A" in name and f".layers.{number}." in name for name in learning) >= 6
    model.train()
    model(*batch_of(waveforms())).logits.square().mean().backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.1)
        plain = build(description(model)).eval()
        plain.load_state_dict(merged(model, model.state_dict()))
        batch, found = batch_of(waveforms()), model.eval()
        torch.testing.assert_close(plain(*batch).logits, found(*batch).logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (EncoderConfig(family="wav2vec3"), "wav2vec2"),
        (EncoderConfig(family="wav2vec2", settings={"hidden_sizes": 3}), "hidden_size"),
        (EncoderConfig(family="moonshine", settings=MOONSHINE, projection_dropout=0.1), "no such dropout"),
        (EncoderConfig(family="wav2vec2", settings={"num_attention_heads": "many"}), "num_attention_heads"),
        (EncoderConfig(family="wav2vec2", settings=COMMON | {"add_adapter": True}), "add_adapter"),
        (EncoderConfig(folder="nowhere"), "config.json is missing"),
    ],
)
def test_a_mistake_is_told_by_its_key(config, told):
    with pytest.raises(SonantError) as error:
        new_model(config, VOCABULARY, 0, hides_frames=True)
    assert told in str(error.value)


def test_whisper_refuses_what_it_cannot_hear():
    model = made("whisper")
    with pytest.raises(SonantError, match="2 s at most"):
        model(*batch_of(waveforms((40000,))))


SMALL = ConformerConfig(
    layer=ConformerLayerConfig(width=24, hidden_width=48, num_heads=2, kernel_size=5), num_layers=2, channels=4
)


@torch.no_grad()
def test_a_small_conformer_scores_each_utterance_in_a_batch_as_alone():
    torch.manual_seed(0)
    model, rows = Conformer(SMALL, VOCABULARY).eval(), waveforms((9000, 16000, 5123, 700, 0))
    scores = model(*batch_of(rows))
    for row, waveform in enumerate(rows):
        num_frames = model.num_frames(len(waveform))
        assert num_frames == scores.lengths.values[row]
        alone = model(*batch_of([waveform]))
        assert alone.logits.shape[1] == num_frames
        torch.testing.assert_close(scores.logits[row, :num_frames], alone.logits[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("num_layers", [0, 1, 2])
def test_a_small_conformer_goes_on_from_its_layers_as_well(num_layers):
    torch.manual_seed(0)
    model = Conformer(SMALL, VOCABULARY).eval()
    check_going_on(model, waveforms(), num_layers)
    check_behind(model, num_layers)


def test_recomputing_layers_changes_no_gradient():
    def gradients(*, is_checkpointed: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model = Conformer(replace(SMALL, final_dropout=0.0), VOCABULARY)
        if is_checkpointed:
            model.gradient_checkpointing_enable()
        torch.manual_seed(1)
        model(*batch_of(waveforms())).logits.square().mean().backward()
        return [parameter.grad for parameter in model.parameters()]

    for plain, again in zip(gradients(is_checkpointed=False), gradients(is_checkpointed=True), strict=True):
        torch.testing.assert_close(again, plain)


@pytest.mark.parametrize("family", FAMILIES)
def test_half_precision_is_near_whole_precision(family):
    model, batch = made(family), batch_of(waveforms())
    whole = model(*batch)
    with torch.autocast("cpu", torch.bfloat16):
        half = model.train()(*batch)
    half.logits.float().square().mean().backward()
    is_real = whole.lengths.mask(whole.logits.shape[1])
    difference = (half.logits.float() - whole.logits)[is_real].abs().mean() / whole.logits[is_real].abs().mean()
    assert difference < 0.1
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("family", ["wav2vec2", "data2vec-audio", "wavlm", "sew"])
def test_gradients_of_half_precision_point_where_those_of_whole_precision_do(family):
    model, batch = made(family).train(), batch_of(waveforms())

    def gradients(*, is_half: bool) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=is_half):
            scores = model(*batch)
        is_real = scores.lengths.mask(scores.logits.shape[1])
        found = torch.autograd.grad(
            scores.logits.float()[is_real].logsumexp(dim=-1).sum(), list(model.parameters()), allow_unused=True
        )
        return torch.cat([part.flatten() for part in found if part is not None])

    cosine = torch.nn.functional.cosine_similarity(gradients(is_half=False), gradients(is_half=True), dim=0)
    assert cosine > 0.999


RATES = ("dropout", "attention_dropout", "activation_dropout", "projection_dropout", "final_dropout", "layer_drop")
LACKING = {"moonshine": {"dropout", "activation_dropout", "projection_dropout", "layer_drop"}}
LACKING |= {"whisper": {"projection_dropout"}}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rate", RATES)
def test_each_dropout_is_drawn_anew_or_refused(family, rate):
    torch.manual_seed(0)
    config = replace(config_for(family), **{rate: 0.5})
    if rate in LACKING.get(family, ()):
        with pytest.raises(SonantError, match="no such dropout"):
            new_model(config, VOCABULARY, 0, hides_frames=False)
        return
    model, _ = new_model(config, VOCABULARY, 0, hides_frames=False)
    batch = batch_of(waveforms())
    heard = model.train().hear(*batch)
    answers = [model.score(heard, Hidden(draw=draw)).logits for draw in range(8)]
    assert any(not torch.equal(answers[0], answer) for answer in answers)
    answers[0].square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    with torch.no_grad():
        assert torch.equal(model.eval()(*batch).logits, model(*batch).logits)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "moonshine"])
def test_layers_that_rest_are_those_of_the_step_and_none_rests_afterwards(family):
    torch.manual_seed(0)
    model, _ = new_model(replace(config_for(family), layer_drop=0.5), VOCABULARY, 0, hides_frames=False)
    rows = waveforms((8000, 8000))
    with torch.no_grad():
        heard, alone = model.train().hear(*batch_of(rows)), model.hear(*batch_of(rows[:1]))
        answers = [model.score(heard, Hidden(draw=draw)).logits for draw in range(12)]
        for draw, answer in enumerate(answers):
            torch.testing.assert_close(answer[:1], model.score(alone, Hidden(draw=draw)).logits, rtol=1e-4, atol=1e-5)
        assert len({round(float(answer.sum()), 3) for answer in answers}) == 4  # of two layers: both, one, other, none
        assert torch.equal(model.eval().score(heard, Hidden(draw=0)).logits, model.score(heard).logits)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_dropouts_nothing_is_drawn_while_learning(family):
    torch.manual_seed(0)
    model, _ = new_model(config_for(family), VOCABULARY, 0, hides_frames=False)
    assert model.drawn == ""
    batch = batch_of(waveforms())
    with torch.no_grad():
        assert torch.equal(model.train()(*batch).logits, model(*batch).logits)
        torch.testing.assert_close(model.train()(*batch).logits, model.eval()(*batch).logits)


@pytest.mark.parametrize("family", ["wav2vec2", "wav2vec2-conformer", "data2vec-audio", "moonshine"])
def test_recomputing_the_layers_of_an_encoder_changes_no_gradient(family):
    def gradients(*, is_checkpointed: bool) -> list[Tensor]:
        model = made(family).train()
        if is_checkpointed:
            model.gradient_checkpointing_enable()
        model(*batch_of(waveforms())).logits.square().mean().backward()
        return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]

    for plain, again in zip(gradients(is_checkpointed=False), gradients(is_checkpointed=True), strict=True):
        torch.testing.assert_close(again, plain, rtol=1e-4, atol=1e-6)
