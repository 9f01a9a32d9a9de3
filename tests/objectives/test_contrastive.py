"""The contrastive objective is that of the reference, and goes on where the reference fails."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from original_wav2vec2 import NORMS, STILL, likeliest, negatives_for, original, same, speech

from sonant.base.errors import ConfigError
from sonant.batches.masking import MaskingConfig
from sonant.batches.pretraining import Drawing, DrawingConfig
from sonant.checkpoints.wav2vec2_weights import from_transformers
from sonant.layers.quantizers import ProductQuantizer, ProductQuantizerConfig
from sonant.models.wav2vec2_pretraining import Compared, Wav2Vec2Pretraining, pretraining_size
from sonant.objectives.contrastive import Contrastive, ContrastiveConfig

torch.backends.cudnn.allow_tf32 = False  # float32 is compared with float32
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]


def without_noise(model: Wav2Vec2Pretraining) -> Wav2Vec2Pretraining:
    model.quantizer.config = dataclasses.replace(model.quantizer.config, noise=False)
    return model


def drawing_for(model: Wav2Vec2Pretraining, **settings: object) -> Drawing:
    return Drawing(model.encoder.num_frames, DrawingConfig(**settings))


def both_losses(monkeypatch, norm: str, device: str, num_codevectors_per_group: int = 16, **settings: object):
    """Their output and our loss for the same weights, batch, hidden frames and negatives; each with its gradients."""
    monkeypatch.setattr(F, "gumbel_softmax", likeliest)
    theirs = original(norm, **STILL, num_codevectors_per_group=num_codevectors_per_group).train().to(device)
    ours = without_noise(same(theirs).to(device))
    # Their padded batch differs from their single utterances where the norm runs over time.
    lengths = (16000, 12001, 9000) if norm == "layer" else (16000, 16000)
    batch = speech(drawing_for(ours, **settings), *lengths)
    is_real = batch.speech.lengths.mask().long()
    output = theirs(
        batch.speech.waveforms.to(device),
        attention_mask=is_real.to(device) if norm == "layer" else None,
        mask_time_indices=batch.hidden.clone().to(device),
        sampled_negative_indices=negatives_for(batch).to(device),
    )
    output.loss.backward()
    loss = Contrastive()(ours, batch.to(device), 0)
    (loss.parts["contrastive"].total + loss.parts["diversity"].weight * loss.parts["diversity"].total).backward()
    return theirs, output, ours, loss


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("settings", [{}, {"num_negatives": 20, "num_from_others": 80}], ids=["own", "others"])
def test_losses_and_gradients_are_those_of_the_reference(monkeypatch, norm, device, settings):
    theirs, output, ours, loss = both_losses(monkeypatch, norm, device, **settings)
    torch.testing.assert_close(loss.parts["contrastive"].total, output.contrastive_loss, rtol=1e-5, atol=0)
    torch.testing.assert_close(loss.parts["diversity"].total, output.diversity_loss, rtol=1e-5, atol=0)
    assert loss.parts["diversity"].weight == theirs.config.diversity_loss_weight
    perplexity = loss.health["code_perplexity"]
    torch.testing.assert_close(perplexity.total / perplexity.count, output.codevector_perplexity, rtol=1e-5, atol=0)
    wanted = from_transformers({name: p.grad for name, p in theirs.named_parameters()}, 2)
    largest = max(gradient.norm() for gradient in wanted.values())
    for name, parameter in ours.named_parameters():
        assert (parameter.grad - wanted[name]).norm() < 1e-4 * wanted[name].norm() + 1e-7 * largest, name


def test_a_negative_with_the_codes_of_the_target_is_none(monkeypatch):
    """Few codes make many of them, and the reference leaves them out of its sum."""
    _, output, _, loss = both_losses(monkeypatch, "layer", "cpu", num_codevectors_per_group=2)
    alike = loss.health["negatives_alike"]
    assert alike.total / alike.count > 0.2
    torch.testing.assert_close(loss.parts["contrastive"].total, output.contrastive_loss, rtol=1e-5, atol=0)


def test_accumulated_equals_a_large_batch_but_for_the_diversity():
    model = same(original("layer", **STILL).eval())
    drawing, objective = drawing_for(model), Contrastive()
    whole = speech(drawing, 16000, 12001, 9000, 5000)
    parts = [whole.select([0, 3]), whole.select([1, 2])]
    total = objective(model, whole, 0).parts["contrastive"].total
    pieces = [objective(model, part, 0).parts["contrastive"].total for part in parts]
    torch.testing.assert_close(sum(pieces), total, rtol=1e-5, atol=0)
    counts = [objective.counts(part)["hidden_frames"] for part in parts]
    assert sum(counts) == objective.counts(whole)["hidden_frames"] == len(whole.places)
    assert objective(model, whole, 0).parts["diversity"].over == "micro_batch"


@pytest.mark.parametrize(("settings", "over"), [({}, "examples"), ({"num_from_others": 5}, "micro_batch")])
def test_what_depends_on_the_company_of_a_batch_says_so(settings, over):
    model = same(original("layer").eval())
    loss = Contrastive()(model, speech(drawing_for(model, **settings), 8000, 6000), 0)
    assert loss.parts["contrastive"].over == over


@pytest.mark.parametrize("num_samples", [(400,), (720, 400), (399, 8000), (1500, 399, 1)])
@pytest.mark.parametrize("settings", [{}, {"num_from_others": 7}])
def test_any_length_from_one_frame_up_has_a_finite_loss_and_gradients(num_samples, settings):
    model = same(original("layer").train())
    loss = Contrastive()(model, speech(drawing_for(model, **settings), *num_samples), 0)
    sum(part.total for part in loss.parts.values()).backward()
    assert all(part.total.isfinite() for part in loss.parts.values())
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("norm", NORMS)
def test_a_batch_without_a_single_frame_has_a_loss_of_zero(norm):
    model = same(original(norm).train())
    batch = speech(drawing_for(model), 399, 100)
    loss = Contrastive()(model, batch, 0)
    assert Contrastive().counts(batch) == {"hidden_frames": 0.0}
    loss.divided_by({"hidden_frames": 0.0}).backward()
    assert all(part.total == 0 for part in loss.parts.values())


def test_a_lonely_hidden_frame_has_nothing_to_be_told_from():
    model = same(original("layer").eval())
    loss = Contrastive()(model, speech(drawing_for(model), 400), 0)
    assert loss.parts["contrastive"].total.item() == pytest.approx(0, abs=1e-6)
    assert loss.health["negatives_alike"].total == loss.health["negatives_alike"].count


def test_the_choice_of_codes_cools_as_the_reference_does():
    config = ContrastiveConfig()
    assert config.temperature(0) == 2.0
    assert config.temperature(1000) == pytest.approx(2.0 * 0.999995**1000)
    assert config.temperature(277_000) == pytest.approx(0.5, abs=0.002)
    assert config.temperature(10_000_000) == 0.5
    with pytest.raises(ConfigError, match="coldest: 3 is more than warmest"):
        ContrastiveConfig(coldest=3.0)


def test_noise_of_training_follows_the_temperature_and_perplexity_does_not():
    torch.manual_seed(0)
    quantizer = ProductQuantizer(8, ProductQuantizerConfig(num_groups=2, num_entries=16, width=4)).train()
    x = torch.randn(2000, 8)
    likely = quantizer.eval()(x, 1.0)
    quantizer.train()
    warm, cold = quantizer(x, 2.0), quantizer(x, 0.01)
    assert 0.1 < (warm.codes == likely.codes).float().mean() < 0.95
    torch.testing.assert_close(warm.perplexity, likely.perplexity)
    torch.testing.assert_close(cold.perplexity, likely.perplexity)
    entries = quantizer.entries.detach()
    torch.testing.assert_close(warm.vectors[:, :2].detach(), entries[0, warm.codes[:, 0]], rtol=0, atol=1e-6)
    torch.testing.assert_close(warm.vectors[:, 2:].detach(), entries[1, warm.codes[:, 1]], rtol=0, atol=1e-6)


def test_a_collapsed_codebook_is_seen_by_the_watches():
    class Collapsed(torch.nn.Module):
        def forward(self, waveforms, lengths, hidden, places, *, temperature, draw):
            count = len(places)
            x = torch.randn(count, 4, requires_grad=True)
            codes = torch.zeros(count, 2, dtype=torch.int64)
            return Compared(x, torch.ones(count, 4), codes, torch.tensor(2.0), 640)

    drawing = Drawing(lambda num_samples: num_samples // 320)
    loss = Contrastive()(Collapsed(), speech(drawing, 16000, 16000), 500)
    figures = {name: float(mean.total) / float(mean.count) for name, mean in loss.health.items()}
    begun = [watch for watch in Contrastive().watches if watch.is_beyond(figures[watch.figure])]
    assert len(begun) == 2
    assert all(watch.is_fatal and "collapsed" in watch.says and watch.for_steps <= 300 for watch in begun)
    assert figures["accuracy"] == 0
    assert loss.parts["contrastive"].total.item() == pytest.approx(0, abs=1e-4)


def test_a_fresh_model_alarms_nobody():
    torch.manual_seed(0)
    model = Wav2Vec2Pretraining(pretraining_size("tiny")).train()
    loss = Contrastive()(model, speech(drawing_for(model), 32000, 32000), 0)
    figures = {name: float(mean.total) / float(mean.count) for name, mean in loss.health.items()}
    assert not [watch for watch in Contrastive().watches if watch.is_beyond(figures[watch.figure])]
    assert figures["mask_share"] == pytest.approx(0.49, abs=0.1)
    assert 0 < figures["codes_used"] <= 1


def test_half_precision_stays_near():
    model = without_noise(same(original("layer", **STILL).train()))
    batch = speech(drawing_for(model), 16000, 12000)
    exact = Contrastive()(model, batch, 0).parts["contrastive"].total
    with torch.autocast("cpu", torch.bfloat16):
        loss = Contrastive()(model, batch, 0)
    assert loss.parts["contrastive"].total.dtype == torch.float32
    torch.testing.assert_close(loss.parts["contrastive"].total, exact, rtol=2e-2, atol=0)


@pytest.mark.slow
def test_a_tiny_model_learns_to_tell_the_frames_of_eight_utterances():
    torch.manual_seed(0)
    model = without_noise(same(original("layer", **STILL).train()))
    batch = speech(drawing_for(model, masking=MaskingConfig(span=3, probability=0.3)), *[6000] * 8)
    objective, optimizer = Contrastive(), torch.optim.AdamW(model.parameters(), 3e-3)
    losses = []
    for step in range(150):
        loss = objective(model, batch, step)
        optimizer.zero_grad()
        loss.divided_by(objective.counts(batch)).backward()
        optimizer.step()
        losses.append(loss.parts["contrastive"].total.item() / len(batch.places))
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
def test_a_compiled_model_has_the_same_loss_and_gradients(norm):
    found = []
    for is_compiled in (False, True):
        model = same(original(norm, **STILL).eval())
        batch = speech(drawing_for(model), 8000, 6000)
        if is_compiled:
            model.compile(backend="aot_eager")
        total = Contrastive()(model, batch, 0).parts["contrastive"].total
        total.backward()
        found.append((total.detach(), model.encoder.convolutions.layers[1].weight.grad))
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)
