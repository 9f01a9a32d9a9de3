"""The largest batch is found in few tries, wherever it lies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sonant.training.batch_size import largest


@given(st.integers(1, 300), st.integers(0, 20_000))
def test_what_is_found_fits_and_little_more_would(start, limit):
    tried: list[int] = []

    def does_fit(size: int) -> bool:
        tried.append(size)
        return size <= limit

    found = largest(start, does_fit)
    assert found <= limit
    assert found in {0, *tried}
    assert len(tried) == len(set(tried)) <= 20
    assert limit < found + max(1, found // 8 + 1) or found == max(tried)


def test_nothing_is_found_where_nothing_fits():
    assert largest(64, lambda size: False) == 0
