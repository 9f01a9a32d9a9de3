"""BEST-RQ: fixed targets from the spectrum, guessed behind any encoder."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from original_wav2vec2 import STILL, config_of, original, speech

from sonant.audio.features.front_end import build_front_end
from sonant.audio.features.log_mel import LogMelConfig
from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.batches.pretraining import Drawing, DrawingConfig
from sonant.models.best_rq import BestRq, SpectralTargets, TargetsConfig
from sonant.models.wav2vec2 import Wav2Vec2
from sonant.objectives.best_rq import BestRqObjective

TARGETS = TargetsConfig(num_mels=20, num_entries=32)


def made() -> tuple[BestRq, Drawing]:
    torch.manual_seed(0)
    encoder = Wav2Vec2(dataclasses.replace(config_of(original("layer", **STILL)).encoder, normalize=True))
    return BestRq(encoder, TARGETS), Drawing(encoder.num_frames, DrawingConfig(num_negatives=0))


def test_a_target_is_the_nearest_entry_to_the_projected_spectrum_of_its_20_ms():
    targets = SpectralTargets(TARGETS, 320)
    waveforms, lengths = torch.randn(1, 8000), Lengths(torch.tensor([8000]))
    found = targets(waveforms, lengths, 24, torch.arange(24))
    mels, _ = build_front_end(LogMelConfig(num_mels=20, dynamic_range=None))(waveforms, lengths)
    mels = (mels[0] - mels[0].mean(dim=0)) / mels[0].std(dim=0, unbiased=False)
    for frame in range(24):
        projected = mels[2 * frame : 2 * frame + 2].flatten().float() @ targets.quantizer.projection
        distances = (F.normalize(projected, dim=0) - targets.quantizer.entries).norm(dim=1)
        assert found[frame] == distances.argmin()


def test_targets_do_not_depend_on_padding_or_company():
    targets = SpectralTargets(TARGETS, 320)
    waveforms, lengths = torch.randn(2, 8000), Lengths(torch.tensor([8000, 5000]))
    both = targets(waveforms, lengths, 24, torch.arange(48))
    alone = targets(waveforms[1:, :5000], Lengths(torch.tensor([5000])), 15, torch.arange(15))
    torch.testing.assert_close(both[24 : 24 + 15], alone)
    assert both.unique().numel() > 8


def test_the_codebook_is_drawn_from_its_seed_travels_with_the_weights_and_never_learns():
    first, second = SpectralTargets(TARGETS, 320), SpectralTargets(TARGETS, 320)
    torch.testing.assert_close(first.quantizer.projection, second.quantizer.projection)
    other = SpectralTargets(dataclasses.replace(TARGETS, seed=1), 320)
    assert not torch.allclose(first.quantizer.entries, other.quantizer.entries)
    assert set(first.state_dict()) == {"quantizer.projection", "quantizer.entries"}
    assert not list(first.parameters())


def test_accumulated_equals_a_large_batch():
    model, drawing = made()
    objective = BestRqObjective()
    whole = speech(drawing, 16000, 12001, 9000, 5000)
    objective(model, whole, 0).divided_by(objective.counts(whole)).backward()
    wanted = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    for rows in ([0, 3], [1, 2]):
        objective(model, whole.select(rows), 0).divided_by(objective.counts(whole)).backward()
    for gradient, parameter in zip(wanted, model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("num_samples", [(400,), (399, 720), (399,)])
def test_any_length_has_a_finite_loss(num_samples):
    model, drawing = made()
    batch = speech(drawing, *num_samples)
    loss = BestRqObjective()(model, batch, 0)
    loss.divided_by(BestRqObjective().counts(batch)).backward()
    assert loss.parts["guess"].total.isfinite()


def test_a_silent_corpus_and_a_guess_that_never_changes_are_told():
    model, drawing = made()
    with torch.no_grad():
        model.guess.weight.zero_()
    batch = drawing.over(dataclasses.replace(speech(drawing, 16000).speech, waveforms=torch.zeros(1, 16000)))
    loss = BestRqObjective()(model, batch, 0)
    figures = {name: float(mean.total) / float(mean.count) for name, mean in loss.health.items()}
    assert {watch.figure for watch in BestRqObjective().watches if watch.is_beyond(figures[watch.figure])} == {
        "guess_perplexity",
        "target_perplexity",
    }


def test_an_encoder_whose_frames_are_no_multiple_of_the_targets_is_refused():
    with pytest.raises(ConfigError, match="frames of 200 samples are no multiple of 160"):
        SpectralTargets(TARGETS, 200)


@pytest.mark.slow
def test_a_tiny_model_learns_eight_utterances_by_heart():
    model, drawing = made()
    batch = speech(drawing, *[6000] * 8)
    objective, optimizer = BestRqObjective(), torch.optim.AdamW(model.parameters(), 5e-3)
    for step in range(200):
        loss = objective(model, batch, step)
        optimizer.zero_grad()
        loss.divided_by(objective.counts(batch)).backward()
        optimizer.step()
    assert loss.health["accuracy"].total / loss.health["accuracy"].count > 0.9
