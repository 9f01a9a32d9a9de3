"""Which stretches of a token file are learnt from and which are kept for validation: no token lies in both.

train, validation = shared_out(file, ShareConfig(share=0.05))     # by whole documents
spans = of_split(file, "train")                                   # as the corpus was split
spans.first(100_000)                                              # a limit
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError, UsageError
from sonant.base.names import suggestion
from sonant.base.randomness import uniform_for
from sonant.batches.tokens.token_file import TokenFile


@dataclass(frozen=True)
class Spans:
    """Stretches of a token file in order, each within one document; none overlaps another."""

    file: TokenFile
    documents: np.ndarray  # (S,) the document that each lies in
    starts: np.ndarray  # (S,)
    ends: np.ndarray  # (S,)

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def lengths(self) -> np.ndarray:
        lengths: np.ndarray = self.ends - self.starts
        return lengths

    @property
    def num_tokens(self) -> int:
        return int(self.lengths.sum())

    def first(self, num_tokens: int) -> Spans:
        """The first so many tokens of these; the document that the limit falls into is cut there."""
        behind = np.cumsum(self.lengths)
        kept = int(np.searchsorted(behind, num_tokens)) + 1
        ends = self.ends[:kept].copy()
        if kept <= len(self):
            ends[-1] -= behind[kept - 1] - num_tokens
        return Spans(self.file, self.documents[:kept], self.starts[:kept], ends)

    def where(self, keep: np.ndarray) -> Spans:
        return Spans(self.file, self.documents[keep], self.starts[keep], self.ends[keep])


@dataclass(frozen=True, kw_only=True)
class ShareConfig:
    """How much of texts without splits is kept for validation, and which part of them."""

    share: Annotated[float, Within(0.0001, 0.9)] = 0.05
    # By a hash of each document's id: the same document goes the same way whatever stands beside it; or the first or
    # last documents; or the tail of the running text, cut to the token wherever that falls.
    by: Literal["hash", "first", "last", "tail"] = "hash"
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.seed and self.by != "hash":
            raise ConfigError("seed", f"nothing is drawn for '{self.by}'.", "Leave it out.")


def everything(file: TokenFile) -> Spans:
    return Spans(file, np.arange(len(file.ends)), file.starts, file.ends)


def of_split(file: TokenFile, split: str) -> Spans:
    """The documents of one split."""
    column = file.documents["split"].combine_chunks().dictionary_encode()
    names = column.dictionary.to_pylist()
    if split not in names:
        known = [name for name in names if name]
        action = suggestion(split, known) if known else "Keep a share of the documents for validation instead."
        raise UsageError(file.folder, f"there is no split '{split}'.", action)
    return everything(file).where(column.indices.to_numpy() == names.index(split))


def shared_out(spans: Spans, config: ShareConfig) -> tuple[Spans, Spans]:
    """What is left for training, and the share for validation."""
    if config.by == "tail":
        return _tail(spans, config.share)
    is_validation = _chosen(spans, config)
    train, validation = spans.where(~is_validation), spans.where(is_validation)
    for name, half in (("training", train), ("validation", validation)):
        if not half.num_tokens:
            problem = f"of {len(spans)} documents none is left for {name} at a share of {config.share:g}."
            raise ConfigError("share", problem, "Change the share, or take by: tail, which cuts inside a document.")
    return train, validation


def _chosen(spans: Spans, config: ShareConfig) -> np.ndarray:
    """Which documents are for validation, whole ones only: (S,) booleans."""
    if config.by == "hash":
        ids = (spans.file.id(document) for document in spans.documents)
        return np.fromiter((uniform_for(config.seed, id, "validation") < config.share for id in ids), bool, len(spans))
    # Of the tokens, as near as whole documents come to it.
    behind = np.cumsum(spans.lengths)
    middles = behind - spans.lengths / 2
    total = spans.num_tokens
    return middles < config.share * total if config.by == "first" else middles >= (1 - config.share) * total


def _tail(spans: Spans, share: float) -> tuple[Spans, Spans]:
    """Cuts the running text at one place."""
    cut = int(spans.num_tokens * (1 - share))
    train = spans.first(cut)
    last = len(train) - 1
    starts = spans.starts[last:].copy()
    starts[0] = train.ends[-1]
    rest = Spans(spans.file, spans.documents[last:], starts, spans.ends[last:])
    return train, rest.where(rest.lengths > 0)
