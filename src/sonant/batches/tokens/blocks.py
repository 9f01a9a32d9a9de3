"""How many tokens a model sees at once: what was asked for, what the tokenizer says and what the model can."""

from __future__ import annotations

from typing import NamedTuple

from sonant.base.errors import ConfigError

USUAL = 1024


class BlockSize(NamedTuple):
    size: int
    warnings: list[str]  # sentences, worth telling


def block_size(asked: int | None, tokenizer_limit: int | None, max_positions: int | None) -> BlockSize:
    """The rules of `run_clm.py`, and one more: what is asked for must fit into the model.

    `tokenizer_limit` is the tokenizer's `model_max_length`, None where it names none; `max_positions` is the config's
    `max_position_embeddings`, None where it has none: such a model has no end.
    """
    if asked is None:
        return _by_default(tokenizer_limit, max_positions)
    if asked < 2:
        problem = f"{asked} was found, 2 is the least from which something can be predicted."
        raise ConfigError("block_size", problem, "Raise it.")
    warnings = []
    size = asked
    if tokenizer_limit is not None and asked > tokenizer_limit:
        size = tokenizer_limit
        warnings.append(f"block_size {asked} is larger than what the tokenizer was made for: {size} is used.")
    if max_positions is not None and 0 < max_positions < size:
        problem = f"{size} tokens were asked for at once, the model has {max_positions} positions."
        raise ConfigError("block_size", problem, f"Write {max_positions} or less.")
    return BlockSize(size, warnings)


def _by_default(tokenizer_limit: int | None, max_positions: int | None) -> BlockSize:
    positions = USUAL if max_positions is None else max_positions
    if tokenizer_limit is not None and tokenizer_limit <= positions:
        return BlockSize(tokenizer_limit, [])
    size = min(USUAL, positions) if positions > 0 else USUAL
    if tokenizer_limit is None:
        return BlockSize(size, [])
    told = f"the tokenizer allows {tokenizer_limit:,} tokens at once: {size} are used. Give block_size for another."
    return BlockSize(size, [told])
