"""CTC: the loss of transformers and of every path counted, whatever is padded, split up or left out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCTC

from sonant.audio.features.utterance import normalized
from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.batches.batch import NO_TOKEN, SpeechBatch
from sonant.batches.collate import collate_speech
from sonant.batches.examples import SpeechExample
from sonant.batches.masking import MaskingConfig
from sonant.layers.conformer import ConformerLayerConfig
from sonant.models.conformer import Conformer, ConformerConfig
from sonant.models.ctc import EncoderConfig, new_model
from sonant.objectives.ctc import Ctc, CtcConfig
from sonant.objectives.hiding import HidingConfig, drawn_hidden

VOCABULARY, BLANK = 12, 0
HIDING = HidingConfig(frames=MaskingConfig(probability=0.3, span=5), bands=MaskingConfig(probability=0.2, span=4))
SAMPLES = (9000, 16000, 5123, 12345, 8000, 7000, 11000, 6000)


@pytest.fixture
def model() -> Conformer:
    torch.manual_seed(0)
    layer = ConformerLayerConfig(width=24, hidden_width=48, num_heads=2, kernel_size=5, dropout=0.0)
    return Conformer(ConformerConfig(layer=layer, num_layers=2, channels=4, final_dropout=0.0), VOCABULARY)


def utterances(samples=SAMPLES, tokens=None) -> SpeechBatch:
    rng = np.random.default_rng(0)
    examples = [
        SpeechExample(
            id=f"u{row}",
            pass_number=0,
            waveform=(0.1 * rng.standard_normal(num_samples)).astype(np.float32),
            sample_rate=16000,
            tokens=np.array(tokens[row] if tokens else rng.integers(1, VOCABULARY, 2 + row % 3), np.int64),
        )
        for row, num_samples in enumerate(samples)
    ]
    return collate_speech(examples)


def objective(model, **settings) -> Ctc:
    return Ctc(CtcConfig(**settings), model.num_frames, BLANK, seed=3)


def gradients(model, ctc, batches) -> tuple[float, dict[str, torch.Tensor]]:
    """Of a step that has all these batches."""
    model.zero_grad()
    counts = {"tokens": sum(ctc.counts(batch)["tokens"] for batch in batches)}
    total = 0.0
    for batch in batches:
        loss = ctc(model, batch, 0).divided_by(counts)
        loss.backward()
        total += float(loss.detach())
    return total, {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def test_the_loss_is_that_of_transformers_utterance_by_utterance():
    settings = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    settings |= {"conv_dim": (16,) * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2}
    torch.manual_seed(0)
    ours, _ = new_model(EncoderConfig(settings=settings), VOCABULARY, BLANK, hides_frames=False)
    theirs = AutoModelForCTC.from_config(AutoConfig.for_model(**ours.config.to_dict())).eval()
    theirs.load_state_dict(ours.state_dict())
    theirs.config.ctc_loss_reduction = "sum"
    batch, ctc = utterances(), objective(ours)
    found = ctc(ours.eval(), batch, 0).parts["ctc"].total
    expected = 0.0
    for row, num_samples in enumerate(batch.lengths.values.tolist()):
        waveform = normalized(batch.waveforms[row : row + 1, :num_samples], torch.tensor([num_samples]))
        expected += theirs(waveform, labels=batch.tokens[row : row + 1]).loss
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


def test_the_loss_is_the_sum_over_all_paths(model):
    torch.manual_seed(1)
    log_probs = torch.randn(1, 4, 3, dtype=torch.float64).log_softmax(dim=-1)
    for text in ([1, 1], [1, 2], [2], []):
        tokens = torch.tensor([[*text, NO_TOKEN]])
        found = objective(model).losses(
            log_probs, Lengths(torch.tensor([4])), tokens, torch.tensor([len(text)]), torch.tensor([True])
        )
        paths = itertools.product(range(3), repeat=4)
        written = [path for path in paths if [s for s, _ in itertools.groupby(path) if s] == text]
        total = sum(math.exp(sum(float(log_probs[0, t, s]) for t, s in enumerate(path))) for path in written)
        assert float(found) == pytest.approx(-math.log(total), rel=1e-9)


@pytest.mark.parametrize("settings", [{}, {"hiding": HIDING}, {"hiding": HIDING, "consistency": 0.2}])
def test_a_batch_of_eight_is_as_four_of_two_in_any_order(model, settings):
    ctc, whole = objective(model, **settings), utterances()
    model.train()
    expected, of_whole = gradients(model, ctc, [whole])
    found, of_parts = gradients(model, ctc, [whole.select([6, 1]), whole.select([0, 7]), whole.select([3, 2, 5, 4])])
    assert found == pytest.approx(expected, rel=1e-5)
    largest = max(float(gradient.abs().max()) for gradient in of_whole.values())
    for name, gradient in of_whole.items():
        torch.testing.assert_close(of_parts[name], gradient, rtol=0, atol=2e-5 * largest, msg=name)


def test_a_text_that_needs_more_frames_than_there_are_is_left_out_of_sums_and_counts(model):
    samples = (9000, 16000)
    frames = model.num_frames(samples[0])
    fitting, ctc = [1, 2] * (frames // 2), objective(model)
    too_long = [1] * (frames // 2 + 2)  # each repeat needs a blank between
    alone = utterances(samples, [[], [4, 5]]).select([1])
    both = utterances(samples, [too_long, [4, 5]])
    assert ctc.counts(both) == ctc.counts(alone) == {"tokens": 3.0}
    expected, of_alone = gradients(model.eval(), ctc, [alone])
    found, of_both = gradients(model, ctc, [both])
    assert found == pytest.approx(expected, rel=1e-5)
    for name, gradient in of_alone.items():
        torch.testing.assert_close(of_both[name], gradient, rtol=1e-3, atol=1e-5)
    loss = ctc(model, both, 0)
    assert loss.health["left_out"].total == 1
    assert ctc.counts(utterances(samples, [fitting, [4]]))["tokens"] == len(fitting) + 3


def test_an_empty_text_is_learnt_as_silence(model):
    batch, ctc = utterances((8000,), [[]]), objective(model)
    assert ctc.counts(batch)["tokens"] == 1
    scores = model.eval()(batch.waveforms, batch.lengths)
    expected = -scores.log_probs[0, :, BLANK].sum()
    torch.testing.assert_close(ctc(model, batch, 0).parts["ctc"].total, expected)


def test_an_empty_batch_has_no_loss(model):
    batch, ctc = SpeechBatch.empty(utterances()), objective(model, hiding=HIDING, consistency=0.2)
    assert ctc.counts(batch) == {"tokens": 0.0}
    loss = ctc(model.train(), batch, 0).divided_by({"tokens": 1.0})
    assert float(loss.detach()) == 0


def test_what_is_hidden_depends_on_seed_pass_and_utterance_alone(model):
    model.train()
    whole = utterances()
    heard = model.hear(whole.waveforms, whole.lengths)
    together = drawn_hidden(model, HIDING, whole, heard, seed=0)
    part = whole.select([5, 2])
    alone = drawn_hidden(model, HIDING, part, model.hear(part.waveforms, part.lengths), seed=0)
    width = alone.frames.shape[1]
    assert torch.equal(together.frames[[5, 2], :width], alone.frames)
    assert torch.equal(together.bands[[5, 2]], alone.bands)
    assert not (together.frames & ~heard.lengths.mask(heard.frames.shape[1])).any()
    other = drawn_hidden(model, HIDING, whole, heard, seed=4)
    assert not torch.equal(together.frames, other.frames)


def test_nothing_is_hidden_and_no_view_doubled_where_nobody_learns(model):
    batch = utterances()
    plain, hiding = objective(model), objective(model, hiding=HIDING, consistency=0.5)
    loss = hiding(model.eval(), batch, 0)
    assert list(loss.parts) == ["ctc"]
    torch.testing.assert_close(loss.parts["ctc"].total, plain(model, batch, 0).parts["ctc"].total)
    assert not torch.allclose(hiding(model.train(), batch, 0).parts["ctc"].total, loss.parts["ctc"].total)


def test_two_views_are_drawn_to_each_other_and_say_over_what(model):
    batch, ctc = utterances(), objective(model, hiding=HIDING, consistency=0.2)
    part = ctc(model.train(), batch, 0).parts["consistency"]
    assert part.over == "examples"
    assert part.weight == 0.2
    before = float(part.total.detach())
    assert before > 0
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(8):
        optimizer.zero_grad()
        ctc(model, batch, 0).parts["consistency"].total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert float(ctc(model, batch, 0).parts["consistency"].total.detach()) < before


def test_what_begins_later_stays_as_it_is_until_then(model):
    model.train()
    begins = {
        name: 2 if name.startswith("layers.1") else 1 for name, _ in model.layers.named_parameters(prefix="layers")
    }
    ctc = Ctc(CtcConfig(), model.num_frames, BLANK, begins=begins)
    learning = []
    for step in range(3):
        model.zero_grad()
        ctc(model, utterances(), step).divided_by({"tokens": 1.0}).backward()
        learning.append({name[:8] for name, p in model.named_parameters() if p.grad is not None})
    assert [names & {"layers.0", "layers.1"} for names in learning] == [set(), {"layers.0"}, {"layers.0", "layers.1"}]
    assert all("head.wei" in names for names in learning)


def test_the_share_of_blanks_is_of_real_frames(model):
    with torch.no_grad():
        model.head.bias[BLANK] = 100
    loss = objective(model)(model.eval(), utterances(), 0)
    share = loss.health["blank_share"]
    frames = sum(model.num_frames(num_samples) for num_samples in SAMPLES)
    assert (int(share.total), int(share.count)) == (frames, frames)


def test_views_without_anything_hidden_are_refused():
    with pytest.raises(ConfigError, match="two views"):
        CtcConfig(consistency=0.2)
