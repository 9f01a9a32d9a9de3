"""Examples laid side by side: the one place where padding is made."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sonant.base.errors import TextError
from sonant.base.lengths import Lengths
from sonant.batches.batch import NO_TOKEN, SpeechBatch, TokenBatch
from sonant.batches.examples import SpeechExample


def collate_speech(examples: Sequence[SpeechExample], num_skipped: int = 0) -> SpeechBatch:
    """A batch of one or more examples."""
    assert examples, "an empty batch is made by SpeechBatch.empty, like another"
    waveforms, lengths = _padded([example.waveform for example in examples], np.float32, 0)
    tokens, token_lengths = _padded_tokens(examples)
    return SpeechBatch(
        ids=tuple(example.id for example in examples),
        passes=tuple(example.pass_number for example in examples),
        waveforms=waveforms,
        lengths=lengths,
        sample_rate=examples[0].sample_rate,
        tokens=tokens,
        token_lengths=token_lengths,
        texts=tuple(example.text for example in examples),
        speakers=tuple(example.speaker for example in examples),
        labels={name: _column([example.labels.get(name) for example in examples]) for name in examples[0].labels},
        num_skipped=num_skipped,
    )


def collate_tokens(
    rows: Sequence[Sequence[np.ndarray]], ids: Sequence[str], passes: Sequence[int] | None = None
) -> TokenBatch:
    """A batch whose rows are lists of documents, each an array of tokens; documents of one row follow one another."""
    joined = [np.concatenate([np.zeros(0, np.int64), *documents]) for documents in rows]
    numbers = [np.repeat(np.arange(len(row)), [len(document) for document in row]) for row in rows]
    positions = [np.concatenate([np.zeros(0, np.int64), *map(_count_up, documents)]) for documents in rows]
    tokens, lengths = _padded(joined, np.int64, NO_TOKEN)
    return TokenBatch(
        ids=tuple(ids),
        passes=tuple(passes or [0] * len(rows)),
        tokens=tokens,
        lengths=lengths,
        documents=_padded(numbers, np.int64, -1)[0],
        positions=_padded(positions, np.int64, -1)[0],
    )


def _count_up(document: np.ndarray) -> np.ndarray:
    return np.arange(len(document))


def _padded(rows: Sequence[np.ndarray], kind: type[np.generic], filler: float) -> tuple[Tensor, Lengths]:
    """Rows (B, longest) and their lengths; written by numpy, which takes no threads from training."""
    lengths = np.array([len(row) for row in rows], np.int64)
    array = np.full((len(rows), int(lengths.max(initial=0))), filler, kind)
    for target, row in zip(array, rows, strict=True):
        target[: len(row)] = row
    return torch.from_numpy(array), Lengths(torch.from_numpy(lengths))


def _padded_tokens(examples: Sequence[SpeechExample]) -> tuple[Tensor | None, Lengths | None]:
    rows = [example.tokens for example in examples if example.tokens is not None]
    if not rows:
        return None, None
    if len(rows) < len(examples):
        untold = next(example.id for example in examples if example.tokens is None)
        raise TextError(untold, "the utterance has no tokens, others have.", "Add them, or train on texts instead.")
    return _padded(rows, np.int64, NO_TOKEN)


def _column(values: Sequence[Any]) -> Any:
    """Numbers, or arrays of one shape, as one float tensor with NaN for what is missing; anything else as it is."""
    if not all(value is None or isinstance(value, Number | np.ndarray) for value in values):
        return tuple(values)
    shape = next((np.shape(value) for value in values if value is not None), ())
    rows = [np.full(shape, np.nan) if value is None else value for value in values]
    return torch.from_numpy(np.array(rows, np.float32).reshape(len(rows), *shape))
