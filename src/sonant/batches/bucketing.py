"""Buckets without walls: utterances of similar duration meet in a batch, others in every epoch.

Sorting by duration pads least and mixes never; walls between buckets mix within them and leave a short batch
in each. Here every duration is blurred by a little, drawn anew each epoch, before sorting and cutting: each
utterance meets any that differs by less than the blur, and no batch is left short. The blur takes what the
padding may cost (`target_padding`) less what the sorted order costs already at that place.

Planning is a function of the sizes, the config, seed and epoch: no draw depends on the rank or the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sonant.base.errors import ConfigError
from sonant.base.randomness import generator_for
from sonant.batches.plans import Plan


@dataclass(frozen=True, kw_only=True)
class BucketingConfig:
    """Batches of up to so many seconds, padding included, for training."""

    kind: Literal["buckets"] = "buckets"
    max_seconds: float = 120.0  # of a batch, padding included; a longer utterance goes alone
    max_utterances: int = 64
    max_padding: float = 0.1  # share of one batch that may be padding
    target_padding: float = 0.025  # share of an epoch that mixing may cost

    def __post_init__(self) -> None:
        _check_positive("max_seconds", self.max_seconds)
        _check_positive("max_utterances", self.max_utterances)
        _check_share("max_padding", self.max_padding)
        _check_share("target_padding", self.target_padding)


@dataclass(frozen=True, kw_only=True)
class TokenBucketingConfig:
    """Batches of up to so many tokens, padding included, for text."""

    kind: Literal["token_buckets"] = "token_buckets"
    max_tokens: int = 8192  # of a batch, padding included; a longer document goes alone
    max_documents: int = 256
    max_padding: float = 0.1
    target_padding: float = 0.025

    def __post_init__(self) -> None:
        _check_positive("max_tokens", self.max_tokens)
        _check_positive("max_documents", self.max_documents)
        _check_share("max_padding", self.max_padding)
        _check_share("target_padding", self.target_padding)


@dataclass(frozen=True, kw_only=True)
class SortingConfig:
    """For evaluation: longest first, the same in every epoch; what does not fit in memory shows at once."""

    kind: Literal["sorted"] = "sorted"
    max_seconds: float = 120.0
    max_utterances: int = 64
    max_padding: float = 0.1

    def __post_init__(self) -> None:
        _check_positive("max_seconds", self.max_seconds)
        _check_positive("max_utterances", self.max_utterances)
        _check_share("max_padding", self.max_padding)


@dataclass(frozen=True, kw_only=True)
class RandomConfig:
    """A fixed number of utterances, drawn whatever their duration."""

    kind: Literal["random"] = "random"
    batch_size: int = 8

    def __post_init__(self) -> None:
        _check_positive("batch_size", self.batch_size)


@dataclass(frozen=True, kw_only=True)
class LengthGroupingConfig:
    """A fixed number of utterances, sorted within shuffled pools of `num_pooled` batches.

    The rule that the field calls `group_by_length` (transformers, `trainer_pt_utils.py`,
    `get_length_grouped_indices`): pools of 50 batches, fewer where there would not be four pools; each
    sorted downwards; the longest utterance of all goes first.
    """

    kind: Literal["group_by_length"] = "group_by_length"
    batch_size: int = 8
    num_pooled: int = 50

    def __post_init__(self) -> None:
        _check_positive("batch_size", self.batch_size)
        _check_positive("num_pooled", self.num_pooled)


PlanConfig = BucketingConfig | TokenBucketingConfig | SortingConfig | RandomConfig | LengthGroupingConfig


def plan(
    sizes: np.ndarray,
    config: PlanConfig,
    *,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world: int = 1,
    group: int | None = None,
) -> Plan:
    """The batches of one epoch; `sizes` (N,) are in the config's unit: seconds, or tokens.

    `group` batches in a row are of similar size: by default as many as there are ranks. One rank that
    accumulates n batches a step takes the same ones as n ranks do, if it plans with group=n too.
    """
    assert np.isfinite(sizes).all(), "sizes are numbers"
    group = world if group is None else group
    assert group % world == 0, "a group is shared out evenly among the ranks"
    rng = generator_for(seed, epoch, "", "plan")
    match config:
        case BucketingConfig():
            bounds = _Bounds(config.max_seconds, config.max_utterances, config.max_padding)
            found = _buckets(sizes, bounds, config.target_padding, group, rng)
        case TokenBucketingConfig():
            bounds = _Bounds(config.max_tokens, config.max_documents, config.max_padding)
            found = _buckets(sizes, bounds, config.target_padding, group, rng)
        case SortingConfig():
            bounds = _Bounds(config.max_seconds, config.max_utterances, config.max_padding)
            found = _cut(np.argsort(-sizes, kind="stable"), sizes, bounds)
        case RandomConfig():
            found = _chop(rng.permutation(len(sizes)), config.batch_size)
        case LengthGroupingConfig():
            found = _chop(_length_groups(sizes, config, rng), config.batch_size)
    return Plan(found.rows, found.ends, rank, world, found.overlong)


@dataclass(frozen=True)
class _Bounds:
    """What one batch may hold."""

    size: float  # padding included
    count: int
    padding: float  # share


def _buckets(sizes: np.ndarray, bounds: _Bounds, target: float, group: int, rng: np.random.Generator) -> Plan:
    order = np.argsort(sizes, kind="stable")
    blur = np.empty(len(sizes))
    blur[order] = _affordable_blur(sizes[order], bounds, target)
    # Nothing but sums, products and a stable sort: the same order on every machine.
    blurred = sizes * (1 + blur * (2 * rng.random(len(sizes)) - 1))
    found = _cut_from(int(rng.integers(len(sizes) + 1)), np.argsort(blurred, kind="stable"), sizes, bounds)
    return found.in_order(_shuffled_in_groups(len(found.ends), group, rng))


def _cut_from(pivot: int, order: np.ndarray, sizes: np.ndarray, bounds: _Bounds) -> Plan:
    """Cuts upwards and downwards from a place: drawn anew each epoch, it moves all boundaries at no cost."""
    below, above = _cut(order[:pivot][::-1], sizes, bounds), _cut(order[pivot:], sizes, bounds)
    below = below.in_order(np.arange(len(below.ends))[::-1])
    ends = np.concatenate([below.ends, above.ends + pivot])
    return Plan(np.concatenate([below.rows, above.rows]), ends, overlong=_overlong(sizes, bounds))


def _affordable_blur(ascending: np.ndarray, bounds: _Bounds, target: float) -> np.ndarray:
    """For each size, in ascending order, the relative half width that its surroundings can pay for."""
    first = np.arange(len(ascending))
    fitting = bounds.size / np.maximum(ascending, bounds.size / bounds.count)
    last = np.minimum(first + np.maximum(fitting.astype(np.int64), 1), len(ascending))
    count = last - first
    sums = np.concatenate([[0.0], np.cumsum(ascending)])
    padded = count * ascending[last - 1]
    unblurred = 1 - (sums[last] - sums[first]) / np.where(padded > 0, padded, 1)
    # The largest of n uniform draws from ±w lies (n - 1) / (n + 1) · w above their mean.
    blur = np.maximum(target - unblurred, 0) * (count + 1) / np.maximum(count - 1, 0.5)
    affordable: np.ndarray = np.minimum(blur, bounds.padding)
    return affordable


def _cut(order: np.ndarray, sizes: np.ndarray, bounds: _Bounds) -> Plan:
    """Closes a batch where one more would break a bound."""
    ends: list[int] = []
    longest, total, count = 0.0, 0.0, 0
    for place, size in enumerate(sizes[order].tolist()):
        padded = (count + 1) * max(size, longest)
        is_over = padded > bounds.size or count >= bounds.count or padded - (total + size) > bounds.padding * padded
        if count and is_over:
            ends.append(place)
            longest, total, count = 0.0, 0.0, 0
        longest, total, count = max(size, longest), total + size, count + 1
    if count:
        ends.append(len(order))
    return Plan(order, np.array(ends, np.int64), overlong=_overlong(sizes, bounds))


def _overlong(sizes: np.ndarray, bounds: _Bounds) -> np.ndarray:
    return np.flatnonzero(sizes > bounds.size)


def _shuffled_in_groups(num_batches: int, group: int, rng: np.random.Generator) -> np.ndarray:
    """Groups of neighbours in random order, each shuffled within; the incomplete one, from anywhere, is last."""
    num_groups, rest = divmod(num_batches, group)
    first = group * int(rng.integers(num_groups + 1))
    leftover = np.arange(first, first + rest)
    groups = np.delete(np.arange(num_batches), leftover).reshape(num_groups, group)
    groups = rng.permuted(groups, axis=1)[rng.permutation(num_groups)]
    return np.concatenate([groups.ravel(), rng.permutation(leftover)])


def _chop(order: np.ndarray, batch_size: int) -> Plan:
    ends = np.minimum(np.arange(batch_size, len(order) + batch_size, batch_size), len(order))
    return Plan(order, ends)


def _length_groups(sizes: np.ndarray, config: LengthGroupingConfig, rng: np.random.Generator) -> np.ndarray:
    order: np.ndarray = rng.permutation(len(sizes))
    pooled = max(min(len(sizes) // (config.batch_size * 4), config.num_pooled), 1) * config.batch_size
    pools = [order[first : first + pooled] for first in range(0, len(order), pooled)]
    order = np.concatenate([pool[np.argsort(-sizes[pool], kind="stable")] for pool in pools] or [order])
    if len(order):
        longest = int(np.argmax(sizes[order]))
        order[[0, longest]] = order[[longest, 0]]
    return order


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise ConfigError(name, f"{value} was found, a number above 0 is required.", "Raise it.")


def _check_share(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ConfigError(name, f"{value} was found, a share from 0 to below 1 is required.", "Write 0.1 for 10 %.")
