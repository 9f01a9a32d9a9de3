"""The width of rows follows the rules of run_clm."""

from __future__ import annotations

import pytest

from sonant.base.errors import ConfigError
from sonant.batches.tokens.blocks import block_size

HUGE = int(1e30)  # what a tokenizer says that knows no limit


@pytest.mark.parametrize(
    ("asked", "tokenizer", "positions", "size", "num_warnings"),
    [
        (None, 512, 1024, 512, 0),
        (None, 2048, 1024, 1024, 1),
        (None, HUGE, 2048, 1024, 1),
        (None, HUGE, 256, 256, 1),
        (None, HUGE, None, 1024, 1),
        (None, HUGE, -1, 1024, 1),
        (None, None, 4096, 1024, 0),
        (128, 1024, 1024, 128, 0),
        (2048, 1024, 4096, 1024, 1),
        (2048, None, None, 2048, 0),
    ],
)
def test_the_width_is_that_of_run_clm(asked, tokenizer, positions, size, num_warnings):
    found = block_size(asked, tokenizer, positions)
    assert (found.size, len(found.warnings)) == (size, num_warnings)


def test_more_than_the_model_has_positions_is_refused():
    with pytest.raises(ConfigError, match="the model has 1024 positions"):
        block_size(2048, None, 1024)
