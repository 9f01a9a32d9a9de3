"""Batches: what was laid side by side is found again, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import TextError
from sonant.base.lengths import Lengths
from sonant.batches.batch import NO_TOKEN, SpeechBatch, TokenBatch
from sonant.batches.collate import collate_speech, collate_tokens
from sonant.batches.examples import SpeechExample


def example(number: int, num_samples: int, num_tokens: int | None = 3, **labels: object) -> SpeechExample:
    rng = np.random.default_rng(number)
    return SpeechExample(
        id=f"u{number}",
        pass_number=number,
        waveform=rng.standard_normal(num_samples).astype(np.float32),
        sample_rate=16000,
        tokens=None if num_tokens is None else rng.integers(0, 30, num_tokens),
        text=f"text {number}",
        speaker=None,
        labels=labels,
    )


@settings(max_examples=50, deadline=None)
@given(sizes=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1, max_size=6))
def test_every_row_holds_its_example_and_padding_behind_it(sizes):
    examples = [example(number, *size) for number, size in enumerate(sizes)]
    batch = collate_speech(examples)
    for row, one in enumerate(examples):
        np.testing.assert_array_equal(batch.waveforms[row, : len(one.waveform)], one.waveform)
        np.testing.assert_array_equal(batch.tokens[row, : len(one.tokens)], one.tokens)
        assert not batch.waveforms[row, len(one.waveform) :].any()
        assert (batch.tokens[row, len(one.tokens) :] == NO_TOKEN).all()
    assert batch.lengths.values.tolist() == [size[0] for size in sizes]
    assert batch.token_lengths.values.tolist() == [size[1] for size in sizes]
    assert batch.waveforms.shape == (len(sizes), max(size[0] for size in sizes))


def test_a_batch_says_whose_it_is_and_how_much():
    batch = collate_speech([example(0, 16000), example(1, 8000)], num_skipped=2)
    assert (batch.ids, batch.passes, len(batch)) == (("u0", "u1"), (0, 1), 2)
    assert batch.num_seconds == 1.5
    assert batch.padding_share == 0.25
    tally = batch.tally()
    assert (tally.seconds, tally.padded_seconds, tally.num_utterances, tally.num_skipped) == (1.5, 2.0, 2, 2)


def test_numbers_become_a_tensor_with_nan_for_what_is_missing_and_the_rest_stays():
    batch = collate_speech([example(0, 9, age=3, mood="glad"), example(1, 9, age=None, mood=None)])
    torch.testing.assert_close(batch.labels["age"], torch.tensor([3.0, float("nan")]), equal_nan=True)
    assert batch.labels["mood"] == ("glad", None)


def test_several_labels_at_a_time_become_columns():
    batch = collate_speech([example(0, 9, all=np.array([1, 0, 1])), example(1, 9, all=None)])
    assert batch.labels["all"][0].tolist() == [1, 0, 1]
    assert batch.labels["all"].isnan().sum() == 3


def test_without_tokens_there_are_none_and_with_some_all_must_have_them():
    assert collate_speech([example(0, 9, None)]).tokens is None
    with pytest.raises(TextError, match="u1: the utterance has no tokens, others have"):
        collate_speech([example(0, 9), example(1, 9, None)])


def test_selected_rows_are_the_batch_of_these_examples_alone():
    examples = [example(number, 10 + number, number + 1, age=number) for number in range(4)]
    assert_same(collate_speech(examples).select([2, 0]), collate_speech([examples[2], examples[0]]))
    moods = collate_speech([example(number, 9, mood=str(number)) for number in range(3)])
    assert moods.select([2, 1]).labels == {"mood": ("2", "1")}


def assert_same(one: SpeechBatch | TokenBatch, other: SpeechBatch | TokenBatch) -> None:
    for name in type(one).__dataclass_fields__:
        a, b = getattr(one, name), getattr(other, name)
        if isinstance(a, Lengths):
            a, b = a.values, b.values
        if isinstance(a, torch.Tensor):
            assert torch.equal(a, b), name
        elif name == "labels":
            assert a.keys() == b.keys()
            assert all(
                torch.equal(a[key], b[key]) if isinstance(a[key], torch.Tensor) else a[key] == b[key] for key in a
            )
        else:
            assert a == b, name


def test_an_empty_batch_has_every_field_and_no_row():
    like = collate_speech([example(0, 9, age=3, mood="glad")], num_skipped=1)
    empty = SpeechBatch.empty(like)
    assert len(empty) == 0
    assert empty.waveforms.shape == (0, 0)
    assert empty.tokens.shape == (0, 0)
    assert empty.labels["age"].shape == (0,)
    assert empty.labels["mood"] == ()
    assert empty.num_seconds == empty.padding_share == empty.num_skipped == 0
    assert empty.tally().num_batches == 1


def test_a_batch_moves_as_a_whole():
    batch = collate_speech([example(0, 9, age=3)]).to("meta")
    found = [batch.waveforms, batch.tokens, batch.lengths.values, batch.token_lengths.values, batch.labels["age"]]
    assert {tensor.device.type for tensor in found} == {"meta"}
    assert batch.ids == ("u0",)


def test_documents_of_a_row_are_told_apart_and_counted_from_their_own_start():
    rows = [[np.array([5, 6]), np.array([7, 8, 9])], [np.array([4])]]
    batch = collate_tokens(rows, ["a", "b"], [0, 1])
    x = NO_TOKEN
    assert batch.tokens.tolist() == [[5, 6, 7, 8, 9], [4, x, x, x, x]]
    assert batch.documents.tolist() == [[0, 0, 1, 1, 1], [0, -1, -1, -1, -1]]
    assert batch.positions.tolist() == [[0, 1, 0, 1, 2], [0, -1, -1, -1, -1]]
    assert (batch.num_tokens, batch.padding_share) == (6, 0.4)
    assert (batch.tally().tokens, batch.tally().padded_tokens) == (6, 10)


def test_rows_of_tokens_are_selected_as_rows_of_speech_are():
    rows = [[np.arange(number + 1)] for number in range(3)]
    chosen = collate_tokens(rows, ["a", "b", "c"]).select([1])
    assert_same(chosen, collate_tokens(rows[1:2], ["b"]))
    assert TokenBatch.empty(chosen).tokens.shape == (0, 0)
