"""What the wings of the house hand each other: padded tensors, ids and Lengths.

Shapes: B utterances, N samples of the longest, L tokens of the longest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from sonant.base.lengths import Lengths
from sonant.batches.report import Tally

NO_TOKEN = -100  # what pads tokens: no vocabulary has it, and torch's losses ignore it


@dataclass(frozen=True, kw_only=True)
class SpeechBatch:
    """Utterances side by side; everything behind a row's length is padding and means nothing."""

    ids: tuple[str, ...]
    passes: tuple[int, ...]  # how often each was seen before: with seed and id the root of every draw for it
    waveforms: Tensor  # (B, N) float32
    lengths: Lengths  # in samples
    sample_rate: int
    tokens: Tensor | None = None  # (B, L) int64, padded with NO_TOKEN
    token_lengths: Lengths | None = None
    texts: tuple[str | None, ...] = ()
    speakers: tuple[str | None, ...] = ()
    labels: Mapping[str, Any] = field(default_factory=dict)  # numbers: (B, …) float32, NaN = missing; else a tuple
    num_skipped: int = 0  # utterances of the batch that could not be read

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def num_seconds(self) -> float:
        """Speech in the batch, without padding."""
        return self.lengths.total / self.sample_rate

    @property
    def padding_share(self) -> float:
        return self.lengths.padding_share

    def tally(self) -> Tally:
        padded = self.waveforms.numel() / self.sample_rate
        return Tally(
            num_batches=1,
            num_utterances=len(self),
            num_skipped=self.num_skipped,
            seconds=self.num_seconds,
            padded_seconds=padded,
        )

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> SpeechBatch:
        return _mapped(self, lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> SpeechBatch:
        """The same batch where a GPU can fetch it while the processor goes on."""
        return _mapped(self, Tensor.pin_memory)

    def select(self, rows: Sequence[int]) -> SpeechBatch:
        """Some of the utterances, padded no further than they need."""
        chosen = _selected(self, rows)
        tokens = chosen.tokens
        if tokens is not None and chosen.token_lengths is not None:
            tokens = tokens[:, : chosen.token_lengths.longest]
        return replace(chosen, waveforms=chosen.waveforms[:, : chosen.lengths.longest], tokens=tokens)

    @classmethod
    def empty(cls, like: SpeechBatch) -> SpeechBatch:
        """No utterance, but every field that `like` has: what a rank takes that is short of a batch."""
        return replace(like.select([]), num_skipped=0)


@dataclass(frozen=True, kw_only=True)
class TokenBatch:
    """Rows of tokens; a row may hold several documents one after the other.

    `documents` numbers the documents of a row from 0 and `positions` counts from 0 in each, so that neither
    attention nor positions need reach beyond one; on padding both are -1.
    """

    ids: tuple[str, ...]
    passes: tuple[int, ...]
    tokens: Tensor  # (B, L) int64, padded with NO_TOKEN
    lengths: Lengths  # in tokens
    documents: Tensor  # (B, L) int64
    positions: Tensor  # (B, L) int64

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def num_tokens(self) -> int:
        """Tokens in the batch, without padding."""
        return self.lengths.total

    @property
    def padding_share(self) -> float:
        return self.lengths.padding_share

    def tally(self) -> Tally:
        padded = self.tokens.numel()
        return Tally(num_batches=1, num_utterances=len(self), tokens=self.num_tokens, padded_tokens=padded)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> TokenBatch:
        return _mapped(self, lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> TokenBatch:
        return _mapped(self, Tensor.pin_memory)

    def select(self, rows: Sequence[int]) -> TokenBatch:
        """Some of the rows, padded no further than they need."""
        chosen = _selected(self, rows)
        longest = chosen.lengths.longest
        trimmed = {name: getattr(chosen, name)[:, :longest] for name in ("tokens", "documents", "positions")}
        return replace(chosen, **trimmed)

    @classmethod
    def empty(cls, like: TokenBatch) -> TokenBatch:
        return like.select([])


AnyBatch = TypeVar("AnyBatch", SpeechBatch, TokenBatch)


def _mapped(batch: AnyBatch, change: Callable[[Tensor], Tensor]) -> AnyBatch:
    """The batch with every tensor changed, those inside Lengths and labels among them."""
    return replace(batch, **{item.name: _changed(getattr(batch, item.name), change) for item in fields(batch)})


def _selected(batch: AnyBatch, rows: Sequence[int]) -> AnyBatch:
    def chosen(values: Tensor) -> Tensor:
        return values.index_select(0, torch.as_tensor(rows, dtype=torch.int64, device=values.device))

    def picked(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(values[row] for row in rows) if values else ()

    return replace(batch, **{item.name: _changed(getattr(batch, item.name), chosen, picked) for item in fields(batch)})


def _changed(
    value: Any,
    change: Callable[[Tensor], Tensor],
    pick: Callable[[tuple[Any, ...]], tuple[Any, ...]] = lambda values: values,
) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Lengths):
        return Lengths(change(value.values))
    if isinstance(value, tuple):
        return pick(value)
    if isinstance(value, Mapping):
        return {name: _changed(inner, change, pick) for name, inner in value.items()}
    return value
