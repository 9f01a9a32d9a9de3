"""Rows and batches of tokens: nothing is lost, whatever the packing, and every place is found at once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import ConfigError
from sonant.batches.batch import NO_TOKEN, TokenBatch
from sonant.batches.bucketing import RandomConfig, TokenBucketingConfig
from sonant.batches.loader import Loader, LoaderConfig
from sonant.batches.tokens.rows import rows_of
from sonant.batches.tokens.source import PackingConfig, TokenSource
from sonant.batches.tokens.spans import everything

PACKINGS = ["stream", "packed", "single"]


def predicted(rows, num_rows: int, *, across_documents: bool) -> Counter[int]:
    """How often each place of the file is predicted, from the place before it in its row."""
    found: Counter[int] = Counter()
    for row in range(num_rows):
        pieces = rows.pieces(row)
        starts = [piece.start for piece in pieces] if not across_documents else [pieces[0].start]
        found.update(place for piece in pieces for place in range(piece.start, piece.end))
        found.subtract(starts)
    return +found


@settings(max_examples=40, deadline=None)
@given(
    block=st.integers(1, 200),
    packing=st.sampled_from(PACKINGS),
    epoch=st.integers(0, 3),
    is_shuffled=st.booleans(),
)
def test_every_token_is_predicted_once_unless_nothing_stands_before_it(file, block, packing, epoch, is_shuffled):
    rows = rows_of(everything(file), block, packing, seed=1, epoch=epoch, is_shuffled=is_shuffled)
    found = predicted(rows, len(rows.sizes), across_documents=packing == "stream")
    assert max(found.values()) == 1
    missing = set(range(len(file))) - set(found)
    if packing == "stream":
        assert len(missing) == 1  # the first token of the epoch
    else:
        assert missing == set(file.starts.tolist())
    assert rows.sizes.max() <= block + 1
    assert [sum(piece.end - piece.start for piece in rows.pieces(row)) for row in range(len(rows.sizes))] == list(
        rows.sizes
    )


def test_packed_rows_cut_no_document_that_fits_into_one(file):
    rows = rows_of(everything(file), 121, "packed", seed=0, epoch=0, is_shuffled=True)
    pieces = [piece for row in range(len(rows.sizes)) for piece in rows.pieces(row)]
    assert sorted((piece.start, piece.end) for piece in pieces) == list(zip(file.starts, file.ends, strict=True))
    assert rows.sizes.sum() / (len(rows.sizes) * 122) > 0.85


def test_epochs_differ_in_order_and_in_cuts_and_an_evaluation_never(file):
    learning = TokenSource(everything(file), PackingConfig(block_size=64), RandomConfig(batch_size=4))
    evaluating = TokenSource(everything(file), PackingConfig(block_size=64, is_shuffled=False))
    assert learning.load(0, 0).ids != learning.load(1, 0).ids
    assert evaluating.load(0, 0).ids == evaluating.load(7, 0).ids
    assert evaluating.load(0, 0).ids[0] == "d0@0"


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_batch_holds_the_tokens_of_the_file_with_their_documents_and_positions(file, packing):
    source = TokenSource(
        everything(file), PackingConfig(block_size=90, packing=packing), TokenBucketingConfig(max_tokens=600)
    )
    starts = dict(zip(file.documents["id"].to_pylist(), file.starts.tolist(), strict=True))
    for step in range(source.num_steps(0)):
        batch = source.load(0, step)
        assert batch.tokens.numel() <= 600
        for row, id in enumerate(batch.ids):
            name, _, offset = id.partition("@")
            first = starts[name] + int(offset)
            number = int((batch.documents[row] == 0).sum())
            np.testing.assert_array_equal(batch.tokens[row, :number], file.tokens[first : first + number])
            assert batch.positions[row, :number].tolist() == list(range(number))
        assert (batch.tokens[batch.documents < 0] == NO_TOKEN).all()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_place_is_restored_without_reading_what_came_before(file, workers):
    def loader() -> Loader[TokenBatch]:
        source = TokenSource(everything(file), PackingConfig(block_size=32), RandomConfig(batch_size=3), seed=5)
        return Loader(source, LoaderConfig(workers=workers))

    with loader() as whole, loader() as rest:
        expected = [batch for batch, _ in zip(whole.endless(), range(60), strict=False)]
        steps = whole.source.num_steps(0)
        assert rest.restore({**whole.state(), "epoch": 0, "step": 7, "tally": {}}) == []
        found = [batch for batch, _ in zip(rest.endless(), range(53), strict=False)]
        assert steps < 60
        for one, other in zip(expected[7:], found, strict=True):
            assert one.ids == other.ids
            assert torch.equal(one.tokens, other.tokens)


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_the_rows_and_have_as_many_steps(file, world):
    def source(rank: int, world: int) -> TokenSource:
        return TokenSource(
            everything(file), PackingConfig(block_size=64), RandomConfig(batch_size=4), rank=rank, world=world
        )

    alone = source(0, 1)
    ranks = [source(rank, world) for rank in range(world)]
    assert len({one.num_steps(0) for one in ranks}) == 1
    shared = [id for step in range(ranks[0].num_steps(0)) for one in ranks for id in one.load(0, step).ids]
    assert shared == [id for step in range(alone.num_steps(0)) for id in alone.load(0, step).ids]
    assert ranks[0].load(0, 0).tokens.shape[0] == 4


def test_changed_conditions_are_named(file):
    first = TokenSource(everything(file), PackingConfig(block_size=64), RandomConfig())
    second = TokenSource(everything(file).first(500), PackingConfig(block_size=32), RandomConfig(), seed=2)
    changed = Loader(second).restore(Loader(first).state())
    assert [line.partition(":")[0] for line in changed] == ["tokens", "packing", "seed"]


def test_texts_too_short_to_predict_anything_are_told(file):
    with pytest.raises(ConfigError, match="1 tokens were found"):
        TokenSource(everything(file).first(1), PackingConfig())
