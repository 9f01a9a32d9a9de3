"""Texts token by token: those of transformers, each as alone, and none without an end."""

from __future__ import annotations

import itertools

import pytest
import torch
from small_writers import (
    EOS,
    FAMILIES,
    PROMPTS,
    VOCABULARY,
    encoded,
    inputs_of_theirs,
    small_writer,
    theirs_of,
    utterances,
)

from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.inference.writing import WritingConfig, write
from sonant.text.prompts import Prompt

SPREAD = 8.0
LONG = WritingConfig(tokens_per_second=20, most_repeats=0)


def written(model, batch, prompt, config=LONG):
    return write(model, *encoded(model, batch), (batch.lengths.values / 16000).tolist(), prompt, config)


def free(model, batch, prompt, ids) -> torch.Tensor:
    """log p of each token of a text and of its end, in one pass."""
    tokens = torch.tensor([[*prompt.ids, *ids]])
    hidden, _ = model.write(tokens, *encoded(model, batch))
    logits = model.proj_out(hidden[0, len(prompt.ids) - 1 :]).float()
    logits[:, list(prompt.never)] = -torch.inf
    return logits.log_softmax(-1)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("beam", [1, 3])
def test_an_utterance_has_the_text_in_a_batch_that_it_has_alone(family, beam):
    model, batch = small_writer(family, SPREAD), utterances()
    config = WritingConfig(tokens_per_second=20, beam=beam, most_repeats=0)
    together = written(model, batch, PROMPTS[family], config)
    assert len({one[0].ids for one in together}) > 1
    for row in range(len(batch)):
        alone = written(model, batch.select([row]), PROMPTS[family], config)[0]
        assert [one.ids for one in alone] == [one.ids for one in together[row]]
        assert [one.log_prob for one in alone] == pytest.approx([one.log_prob for one in together[row]], abs=1e-3)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_the_likeliest_tokens_are_those_that_transformers_generates(family):
    model, batch, prompt = small_writer(family, SPREAD), utterances(), PROMPTS[family]
    prompt = Prompt(ids=prompt.ids, end=prompt.end)
    found = written(model, batch, prompt)
    theirs = theirs_of(model)
    for row, count in enumerate(batch.lengths.values.tolist()):
        sound, given = inputs_of_theirs(family, batch.waveforms[row, :count]), torch.tensor([prompt.ids])
        for _ in range(len(found[row][0].ids) + found[row][0].is_whole):
            out = theirs(**sound, decoder_input_ids=given)
            given = torch.cat([given, out.logits[:, -1].argmax(-1, keepdim=True)], dim=1)
        expected = given[0, len(prompt.ids) :].tolist()
        assert list(found[row][0].ids) == expected[: len(expected) - (expected[-1] == EOS)]
        assert found[row][0].is_whole == (expected[-1] == EOS)


@torch.no_grad()
def test_log_probabilities_are_those_of_one_pass_over_the_text():
    model, prompt = small_writer("whisper", SPREAD), PROMPTS["whisper"]
    batch = utterances((9000,))
    for one in written(model, batch, prompt, WritingConfig(beam=4, tokens_per_second=20))[0]:
        log_probs = free(model, batch, prompt, one.ids)
        expected = [float(log_probs[place, id]) for place, id in enumerate(one.ids)]
        assert one.log_probs == pytest.approx(expected, abs=1e-3)
        if one.is_whole:
            assert one.end_log_prob == pytest.approx(float(log_probs[len(one.ids), EOS]), abs=1e-3)


@torch.no_grad()
def test_a_beam_that_holds_everything_finds_the_best_of_all_texts():
    model, batch = small_writer("moonshine", SPREAD), utterances((6000,))
    kept = (EOS, 9, 10, 11)
    never = tuple(id for id in range(VOCABULARY) if id not in kept)
    prompt = Prompt(ids=(1,), end=EOS, never=never)
    config = WritingConfig(beam=100, tokens_per_second=0.0, length_weight=0.0)
    states, lengths = encoded(model, batch)
    best = max(
        (ids for count in range(4) for ids in itertools.product(kept[1:], repeat=count)),
        key=lambda ids: float(sum(free(model, batch, prompt, ids)[place, id] for place, id in enumerate([*ids, EOS]))),
    )
    found = write(model, states, lengths, [0.1], prompt, config)[0]
    short = [one for one in found if one.is_whole and len(one.ids) < 4]
    assert short[0].ids == best


def test_a_wider_beam_never_finds_a_less_likely_text():
    batch = utterances()
    for family in FAMILIES:
        model = small_writer(family, SPREAD)
        weights = {"length_weight": 0.0, "tokens_per_second": 20}
        narrow = written(model, batch, PROMPTS[family], WritingConfig(beam=1, **weights))
        wide = written(model, batch, PROMPTS[family], WritingConfig(beam=8, **weights))
        assert sum(one[0].log_prob for one in wide) >= sum(one[0].log_prob for one in narrow) - 1e-3
        assert all(len({one.ids for one in texts}) == len(texts) for texts in wide)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_goes_on_for_ever_and_nothing_forbidden_is_written(family):
    model, batch = small_writer(family, SPREAD), utterances()
    endless = Prompt(ids=PROMPTS[family].ids, end=EOS, never=(EOS, 9, 10), never_first=(11,))
    seconds = (batch.lengths.values / 16000).tolist()
    for one, duration in zip(written(model, batch, endless), seconds, strict=True):
        assert len(one[0].ids) == int(20 * duration + 10)
        assert not one[0].is_whole
        assert not {9, 10} & set(one[0].ids)
        assert one[0].ids[0] != 11
    unlimited = written(model, batch, endless, WritingConfig(most_repeats=0))
    assert {len(one[0].ids) for one in unlimited} == {65 - len(endless.ids) - 1}


def test_no_utterance_has_no_text():
    model = small_writer("moonshine")
    assert (
        write(model, torch.zeros(0, 4, 32), Lengths(torch.zeros(0, dtype=torch.int64)), [], PROMPTS["moonshine"], LONG)
        == []
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("beam", [1, 3])
def test_what_repeats_itself_is_written_once_and_ends(family, beam):
    model, batch = small_writer(family, SPREAD), utterances()
    few = tuple(id for id in range(VOCABULARY) if id not in (9, 10))
    stuck = Prompt(ids=PROMPTS[family].ids, end=EOS, never=few)
    config = WritingConfig(tokens_per_second=20, beam=beam, most_repeats=3)
    free = written(model, batch, stuck, WritingConfig(tokens_per_second=20, beam=beam, most_repeats=0))
    for one, long in zip(written(model, batch, stuck, config), free, strict=True):
        for text in one:
            assert all(
                text.ids[-3 * size :] != text.ids[-size:] * 3 for size in range(1, 11) if len(text.ids) >= 3 * size
            )
        assert len(one[0].ids) < len(long[0].ids)
        assert len(one[0].log_probs) == len(one[0].ids)


def test_a_limit_of_one_repeat_which_no_text_keeps_is_refused():
    with pytest.raises(ConfigError, match=r"most_repeats.*Give 2 or more; or 0"):
        WritingConfig(most_repeats=1)
