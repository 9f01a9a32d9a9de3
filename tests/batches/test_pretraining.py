"""Batches to pretrain on: draws belong to the utterance, never to batch, padding or worker."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sonant.batches.bucketing import RandomConfig, SortingConfig
from sonant.batches.examples import ExampleConfig, SpeechExample, SpeechExamples
from sonant.batches.loader import Loader, LoaderConfig
from sonant.batches.pretraining import Drawing, DrawingConfig
from sonant.batches.source import CorpusSource

NUM_SAMPLES = [16000, 8000, 399, 400, 12345]


def frames_of(num_samples: int) -> int:
    """Frames of 20 ms, roughly those of wav2vec 2.0."""
    return max((num_samples - 400) // 320 + 1, 0)


def example(number: int, pass_number: int = 0) -> SpeechExample:
    samples = np.random.default_rng(number).standard_normal(NUM_SAMPLES[number]).astype(np.float32)
    return SpeechExample(id=f"u{number}", pass_number=pass_number, waveform=samples, sample_rate=16000)


DRAWING = Drawing(frames_of, seed=3)


def test_padding_is_never_hidden_and_every_utterance_with_a_frame_has_some():
    batch = DRAWING([example(number) for number in range(5)])
    assert batch.hidden.shape == (5, frames_of(16000))
    for row, num_samples in enumerate(NUM_SAMPLES):
        assert not batch.hidden[row, frames_of(num_samples) :].any()
        assert bool(batch.hidden[row].any()) == (num_samples >= 400)
    assert batch.num_hidden == tuple(batch.hidden.sum(dim=1).tolist())
    torch.testing.assert_close(batch.places, batch.hidden.flatten().nonzero().flatten())


def test_what_is_drawn_for_an_utterance_does_not_depend_on_its_company():
    together = DRAWING([example(number) for number in range(5)])
    first = np.concatenate([[0], np.cumsum(together.num_hidden)])
    for row in range(5):
        alone = DRAWING([example(row)])
        torch.testing.assert_close(together.hidden[row, : alone.hidden.shape[1]], alone.hidden[0])
        mine = together.negatives[first[row] : first[row + 1]] - first[row]
        torch.testing.assert_close(mine, alone.negatives)


def test_each_pass_and_each_seed_draws_anew_and_rows_are_independent():
    one = DRAWING([example(0)])
    assert not torch.equal(one.hidden, DRAWING([example(0, pass_number=1)]).hidden)
    assert not torch.equal(one.hidden, Drawing(frames_of, seed=4)([example(0)]).hidden)
    twin = SpeechExample(id="twin", pass_number=0, waveform=example(0).waveform, sample_rate=16000)
    both = DRAWING([example(0), twin])
    assert not torch.equal(both.hidden[0], both.hidden[1])


def test_negatives_of_the_same_utterance_are_its_own_hidden_frames():
    batch = DRAWING([example(number) for number in range(5)])
    owners = torch.tensor([row for row, count in enumerate(batch.num_hidden) for _ in range(count)])
    assert (owners[batch.negatives] == owners[:, None]).all()


def test_negatives_of_others_reach_the_whole_batch_but_never_the_frame_itself():
    drawing = Drawing(frames_of, DrawingConfig(num_negatives=0, num_from_others=500))
    batch = drawing([example(0), example(1)])
    total = len(batch.places)
    assert batch.negatives.shape == (total, 500)
    assert not (batch.negatives == torch.arange(total)[:, None]).any()
    assert batch.negatives.unique().numel() == total


def test_some_rows_of_a_batch_are_the_batch_of_some_rows():
    whole = DRAWING([example(number) for number in range(5)])
    picked, made = whole.select([3, 1]), DRAWING([example(3), example(1)])
    for name in ("hidden", "places", "negatives"):
        torch.testing.assert_close(getattr(picked, name), getattr(made, name))
    assert picked.num_hidden == made.num_hidden
    assert picked.ids == ("u3", "u1")


def test_an_empty_batch_has_every_field():
    empty = DRAWING([example(0)]).select([])
    assert len(empty) == 0
    assert empty.num_hidden == ()
    assert empty.places.numel() == empty.negatives.numel() == 0
    assert empty.tally().num_utterances == 0


@pytest.mark.parametrize("workers", [0, 3])
def test_crops_and_draws_are_made_by_workers_and_are_the_same_in_any_number(corpus, workers):
    examples = SpeechExamples(ExampleConfig(crop_seconds=1.0), seed=5)
    source = CorpusSource([corpus], examples, DRAWING, RandomConfig(batch_size=4), seed=5)
    loader = Loader(source, LoaderConfig(workers=workers))
    epochs = [[(b.ids, b.speech.waveforms, b.hidden, b.negatives) for b in loader] for _ in range(2)]
    again = Loader(
        CorpusSource([corpus], examples, DRAWING, RandomConfig(batch_size=4), seed=5), LoaderConfig(workers=0)
    )
    for (ids, waveforms, hidden, negatives), batch in zip(epochs[0], again, strict=True):
        assert ids == batch.ids
        assert torch.equal(waveforms, batch.speech.waveforms)
        assert torch.equal(hidden, batch.hidden)
        assert torch.equal(negatives, batch.negatives)
    longest = max(corpus.seconds)
    assert longest > 1.5
    starts = [
        {id: row[:100] for ids, waveforms, _, _ in epoch for id, row in zip(ids, waveforms, strict=True)}
        for epoch in epochs
    ]
    moved = [id for id in starts[0] if not torch.equal(starts[0][id], starts[1][id])]
    assert len(moved) >= sum(seconds > 1.0 for seconds in corpus.seconds) - 1
    loader.close()


def test_a_validation_hides_the_same_frames_every_time(corpus):
    source = CorpusSource([corpus], SpeechExamples(), DRAWING, SortingConfig())
    loader = Loader(source, LoaderConfig(workers=0))
    first, second = list(loader), list(loader)
    assert all(torch.equal(a.hidden, b.hidden) for a, b in zip(first, second, strict=True))
