"""A table of integers finds what a dictionary finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sonant.decoding.ngram.integer_table import build_table

keys = st.integers(0, 2**62)


@given(stored=st.lists(keys, unique=True, max_size=60), asked=st.lists(keys, max_size=60))
def test_a_table_finds_what_a_dictionary_finds(stored, asked):
    table = build_table(np.array(stored, np.int64))
    places = {key: place for place, key in enumerate(stored)}
    wanted = [*asked, *stored]
    assert table.find(np.array(wanted, np.int64)).tolist() == [places.get(key, -1) for key in wanted]


def test_keys_that_collide_are_all_found():
    neighbours = np.arange(5000, dtype=np.int64) << 32
    np.testing.assert_array_equal(build_table(neighbours).find(neighbours), np.arange(5000))
