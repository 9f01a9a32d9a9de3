"""Training and validation: together everything, apart in every token."""

from __future__ import annotations

import numpy as np
import pytest

from sonant.base.errors import ConfigError, UsageError
from sonant.batches.tokens.spans import ShareConfig, Spans, everything, of_split, shared_out


def places(spans: Spans) -> list[int]:
    return [place for start, end in zip(spans.starts, spans.ends, strict=True) for place in range(start, end)]


@pytest.mark.parametrize("by", ["hash", "first", "last", "tail"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_no_token_lies_in_both_halves_or_in_neither(file, by, share):
    train, validation = shared_out(everything(file), ShareConfig(share=share, by=by))
    assert sorted(places(train) + places(validation)) == list(range(len(file)))


@pytest.mark.parametrize("by", ["hash", "first", "last"])
def test_no_document_lies_in_both_halves(file, by):
    train, validation = shared_out(everything(file), ShareConfig(share=0.3, by=by))
    assert not set(train.documents.tolist()) & set(validation.documents.tolist())
    assert abs(validation.num_tokens / len(file) - 0.3) < 0.2


def test_the_tail_is_cut_to_the_token(file):
    train, validation = shared_out(everything(file), ShareConfig(share=0.1, by="tail"))
    assert places(train) == list(range(int(len(file) * 0.9)))
    assert validation.num_tokens == len(file) - train.num_tokens


def test_a_document_goes_the_same_way_whatever_stands_beside_it(file):
    config = ShareConfig(share=0.4)
    whole, part = everything(file), everything(file).where(np.arange(40) % 2 == 0)
    chosen = set(shared_out(whole, config)[1].documents.tolist())
    assert set(shared_out(part, config)[1].documents.tolist()) == {number for number in chosen if number % 2 == 0}


@pytest.mark.parametrize("limit", [1, 100, 10**9])
def test_a_limit_takes_the_first_tokens_and_no_more(file, limit):
    assert places(everything(file).first(limit)) == list(range(min(limit, len(file))))


def test_a_half_of_nothing_is_refused(file):
    with pytest.raises(ConfigError, match="none is left for validation"):
        shared_out(everything(file).where(np.arange(40) == 0), ShareConfig(share=0.001))


def test_a_split_that_is_not_there_is_told(file):
    with pytest.raises(UsageError, match="there is no split 'dev'"):
        of_split(file, "dev")
