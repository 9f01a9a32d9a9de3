"""The loss of a recogniser that writes: that of transformers, whatever is padded or split up."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from small_writers import FAMILIES, PROMPTS, encoded, inputs_of_theirs, small_writer, theirs_of, utterances

from sonant.batches.batch import NO_TOKEN, SpeechBatch
from sonant.batches.masking import MaskingConfig
from sonant.objectives.hiding import HidingConfig
from sonant.objectives.seq2seq import Seq2Seq, Seq2SeqConfig

HIDING = HidingConfig(frames=MaskingConfig(probability=0.3, span=3), bands=MaskingConfig(probability=0.2, span=4))


def objective(family: str, model, **settings) -> Seq2Seq:
    return Seq2Seq(Seq2SeqConfig(**settings), model.num_frames, PROMPTS[family])


def total(found) -> torch.Tensor:
    return found.parts["seq2seq"].total


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_that_of_transformers_on_the_same_labels(family):
    model, batch = small_writer(family), utterances()
    learning = objective(family, model)
    tokens, labels = learning.rows(batch)
    theirs, expected = theirs_of(model), 0.0
    for row, count in enumerate(batch.lengths.values.tolist()):
        given = inputs_of_theirs(family, batch.waveforms[row, :count])
        found = theirs(**given, decoder_input_ids=tokens[row : row + 1], labels=labels[row : row + 1])
        expected += float(found.loss.detach()) * int((labels[row] != NO_TOKEN).sum())
    torch.testing.assert_close(float(total(learning(model, batch, 0)).detach()), expected, rtol=1e-5, atol=1e-5)
    assert learning.counts(batch)["tokens"] == int((labels != NO_TOKEN).sum())


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_stand_behind_the_prompt_and_before_their_end(family):
    model, batch, prompt = small_writer(family), utterances(), PROMPTS[family]
    tokens, targets = objective(family, model).rows(batch)
    for row, count in enumerate(batch.token_lengths.values.tolist()):
        text, first = batch.tokens[row, :count].tolist(), len(prompt.ids)
        assert tokens[row, : first + count].tolist() == [*prompt.ids, *text]
        learnt = [id for id in targets[row].tolist() if id != NO_TOKEN]
        assert learnt == [*text, prompt.end]
        assert targets[row, first - 1] == learnt[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_is_the_sum_of_its_parts_with_their_gradients(family):
    model, batch = small_writer(family).train(), utterances()
    learning = objective(family, model, hiding=HIDING, smoothing=0.1)

    def learnt(*parts: SpeechBatch) -> dict[str, torch.Tensor]:
        model.zero_grad()
        for part in parts:
            total(learning(model, part, 0)).backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    whole = learnt(batch)
    parts = learnt(batch.select([2, 0]), batch.select([1]), batch.select([3]), SpeechBatch.empty(batch))
    for name, gradient in whole.items():
        torch.testing.assert_close(parts[name], gradient, rtol=1e-4, atol=1e-5)


def test_smoothing_is_that_of_torch_and_only_while_learning():
    model, batch = small_writer("moonshine"), utterances()
    plain, smooth = objective("moonshine", model), objective("moonshine", model, smoothing=0.2)
    tokens, targets = plain.rows(batch)
    logits = model(batch.waveforms, batch.lengths, tokens, lambda hidden, head: head(hidden))
    expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum", label_smoothing=0.2)
    torch.testing.assert_close(total(smooth(model.train(), batch, 0)), expected)
    torch.testing.assert_close(total(smooth(model.eval(), batch, 0)), total(plain(model, batch, 0)))


@pytest.mark.parametrize("family", FAMILIES)
def test_hiding_changes_what_is_learnt_and_nothing_else(family):
    model, batch = small_writer(family), utterances()
    plain, hiding = objective(family, model), objective(family, model, hiding=HIDING)
    assert total(plain(model.train(), batch, 0)) != total(hiding(model, batch, 0))
    assert total(plain(model.eval(), batch, 0)) == total(hiding(model, batch, 0))


@pytest.mark.parametrize("family", FAMILIES)
def test_losses_by_utterance_add_up(family):
    model, batch = small_writer(family), utterances()
    learning = objective(family, model)
    with torch.no_grad():
        losses, counts = learning.losses_of(model, *encoded(model, batch), batch)
        torch.testing.assert_close(losses.sum(), total(learning(model, batch, 0)))
    assert counts.sum() == learning.counts(batch)["tokens"]


def test_an_empty_batch_has_no_loss_and_an_empty_text_its_end():
    model, batch = small_writer("moonshine"), utterances()
    learning = objective("moonshine", model.train())
    empty = SpeechBatch.empty(batch)
    assert learning.counts(empty) == {"tokens": 0.0}
    assert float(total(learning(model, empty, 0)).detach()) == 0
    assert learning.counts(utterances(num_tokens=0)) == {"tokens": float(len(batch))}
    assert total(learning(model, utterances(num_tokens=0), 0)) > 0


def test_what_begins_later_has_no_gradient_before():
    model, batch = small_writer("moonshine").train(), utterances()
    name = "model.encoder.layer_norm.weight"
    learning = Seq2Seq(Seq2SeqConfig(), model.num_frames, PROMPTS["moonshine"], begins={name: 3})
    total(learning(model, batch, 2)).backward()
    assert model.get_parameter(name).grad is None
    total(learning(model, batch, 3)).backward()
    assert model.get_parameter(name).grad is not None
