"""wav2vec 2.0 gives what `transformers` gives for each utterance alone, whatever it is batched with."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from original_wav2vec2 import NORMS, STILL, original, same

from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.layers.transformer import TransformerConfig
from sonant.layers.waveform_convolutions import ConvolutionsConfig
from sonant.models.wav2vec2 import Wav2Vec2, Wav2Vec2Config, size
from sonant.models.wav2vec2_pretraining import Wav2Vec2Pretraining, pretraining_size

torch.backends.cudnn.allow_tf32 = False  # float32 is compared with float32
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]
NUM_SAMPLES = [8000, 6001, 400, 399]


def batch(device: str = "cpu") -> tuple[torch.Tensor, Lengths]:
    """Noise, with noise where there is padding too."""
    torch.manual_seed(1)
    return torch.randn(4, 8000).to(device), Lengths(torch.tensor(NUM_SAMPLES, device=device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("norm", NORMS)
def test_every_utterance_of_a_batch_has_the_frames_that_transformers_gives_it_alone(norm, device):
    theirs = original(norm).eval()
    ours = same(theirs).encoder.to(device)
    waveforms, lengths = batch(device)
    with torch.no_grad():
        encoded = ours(waveforms, lengths)
        for row, num_samples in enumerate(NUM_SAMPLES[:3]):
            alone = theirs.wav2vec2(waveforms[row : row + 1, :num_samples].cpu(), output_hidden_states=True)
            num_frames = int(encoded.lengths.values[row])
            assert num_frames == alone.last_hidden_state.shape[1]
            torch.testing.assert_close(
                encoded.frames[row, :num_frames].cpu(), alone.last_hidden_state[0], rtol=0, atol=1e-5
            )
            torch.testing.assert_close(
                encoded.heard[row, :num_frames].cpu(), alone.extract_features[0], rtol=0, atol=1e-5
            )
            for mine, state in zip(encoded.states[:-1], alone.hidden_states[:-1], strict=True):
                torch.testing.assert_close(mine[row, :num_frames].cpu(), state[0], rtol=0, atol=1e-5)
    assert encoded.lengths.values.tolist() == [24, 18, 1, 0]


@pytest.mark.parametrize("norm", NORMS)
def test_hidden_frames_are_not_seen(norm):
    encoder = same(original(norm).eval()).encoder
    waveforms, lengths = torch.randn(1, 8000), Lengths(torch.tensor([8000]))
    everything = torch.ones(1, 24, dtype=torch.bool)
    first = encoder(waveforms, lengths, hidden=everything)
    second = encoder(torch.randn(1, 8000), lengths, hidden=everything)
    torch.testing.assert_close(first.frames, second.frames)
    assert not torch.allclose(first.heard, second.heard)
    assert not torch.allclose(first.frames, encoder(waveforms, lengths).frames)


def test_loudness_and_offset_do_not_matter_where_waveforms_are_normalized():
    torch.manual_seed(0)
    encoder = Wav2Vec2(size("tiny")).eval()
    waveforms, lengths = batch()
    louder = encoder(0.1 * waveforms + 0.3, lengths)
    torch.testing.assert_close(louder.frames, encoder(waveforms, lengths).frames, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["tiny", "base", "large"])
def test_the_sizes_are_those_of_the_paper(name):
    with torch.device("meta"):
        model = Wav2Vec2Pretraining(pretraining_size(name))
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    assert millions == pytest.approx({"tiny": 2.5, "base": 95.05, "large": 317.4}[name], abs=0.3)


@pytest.mark.parametrize("norm", NORMS)
def test_recomputing_layers_backward_changes_nothing_but_memory(norm):
    found = []
    for is_checkpointed in (False, True):
        encoder = same(original(norm)).encoder.train()
        if is_checkpointed:
            encoder.gradient_checkpointing_enable()
        torch.manual_seed(5)
        encoder(*batch()).frames.square().sum().backward()
        found.append([parameter.grad for parameter in encoder.parameters() if parameter.grad is not None])
    for kept, recomputed in zip(*found, strict=True):
        torch.testing.assert_close(kept, recomputed)


def test_the_gradient_of_the_convolutions_can_be_scaled():
    found = []
    for scale in (1.0, 0.25):
        encoder = same(original("layer", **STILL)).encoder
        encoder.config = dataclasses.replace(encoder.config, convolution_gradient=scale)
        encoder(*batch()).frames.square().sum().backward()
        found.append((encoder.convolutions.layers[2].weight.grad, encoder.project.weight.grad))
    torch.testing.assert_close(found[1][0], found[0][0] * 0.25)
    torch.testing.assert_close(found[1][1], found[0][1])


@pytest.mark.parametrize("norm", NORMS)
def test_dropout_and_layer_drop_disturb_training_alone(norm):
    inputs = batch()
    with_dropout = same(original(norm, layerdrop=0.0).train()).encoder
    assert not torch.allclose(with_dropout(*inputs).frames, with_dropout(*inputs).frames)
    with_layer_drop = same(original(norm, **{**STILL, "layerdrop": 0.5}).train()).encoder
    frames = [with_layer_drop(*inputs, draw=draw).frames for draw in (0, 0, 1, 2, 3, 4, 5)]
    assert torch.equal(frames[0], frames[1])
    assert any(not torch.allclose(frames[0], other) for other in frames)
    for encoder in (with_dropout.eval(), with_layer_drop.eval()):
        torch.testing.assert_close(encoder(*inputs, draw=1).frames, encoder(*inputs, draw=2).frames)


def test_every_parameter_learns():
    model = Wav2Vec2(size("tiny"))
    waveforms, lengths = batch()
    hidden = torch.zeros(4, 24, dtype=torch.bool)
    hidden[0, :3] = True
    model(waveforms, lengths, hidden=hidden).frames.square().sum().backward()
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]


def test_widths_that_cannot_be_shared_are_refused_by_name():
    with pytest.raises(ConfigError, match="num_heads: 5 heads cannot share a width of 768"):
        TransformerConfig(num_heads=5)
    with pytest.raises(ConfigError, match="position_groups: 5 groups cannot share"):
        Wav2Vec2Config(position_groups=5, convolutions=ConvolutionsConfig())
