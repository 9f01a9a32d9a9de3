"""Token files as batches: a source that the loader reads as it reads corpora, any batch at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sonant.base.errors import ConfigError
from sonant.batches.batch import TokenBatch
from sonant.batches.bucketing import PlanConfig, plan
from sonant.batches.collate import collate_tokens
from sonant.batches.plans import Epochs, Plan
from sonant.batches.tokens.rows import Packing, Piece, Rows, rows_of
from sonant.batches.tokens.spans import Spans


@dataclass(frozen=True, kw_only=True)
class PackingConfig:
    """How tokens are laid into rows."""

    block_size: int = 1024  # tokens that the model sees at once
    packing: Packing = "stream"
    is_shuffled: bool = True  # another order and other cuts each epoch; False: rows as they stand in the file

    def __post_init__(self) -> None:
        if self.block_size < 1:
            raise ConfigError("block_size", f"{self.block_size} was found, 1 or more is required.", "Raise it.")


class TokenSource:
    """The share of one rank: rows of `packing`, met in batches as `planning` says.

    Without `planning` the rows come in their order, `rows_per_batch` at a time: what an evaluation takes.
    """

    def __init__(
        self,
        spans: Spans,
        packing: PackingConfig,
        planning: PlanConfig | None = None,
        *,
        rows_per_batch: int = 8,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        group: int | None = None,
    ) -> None:
        self.spans, self.packing, self.planning = spans, packing, planning
        self.rows_per_batch, self.seed, self.rank, self.world, self.group = rows_per_batch, seed, rank, world, group
        if spans.num_tokens < 2:
            problem = f"{spans.num_tokens} tokens were found, 2 are the least that something is predicted in."
            raise ConfigError("texts", problem, "Give more text.")
        self._epochs = Epochs(self._made)

    def num_steps(self, epoch: int) -> int:
        return len(self._epoch(epoch)[1])

    def num_overlong(self, epoch: int) -> int:
        return len(self._epoch(epoch)[1].overlong)

    def largest(self) -> list[int]:
        rows, planned = self._epoch(0)
        return planned.largest(np.asarray(rows.sizes, np.float64))

    def conditions(self) -> Mapping[str, str]:
        return {
            "tokens": f"{self.spans.num_tokens} of {self.spans.file.fingerprint}",
            "packing": repr(self.packing),
            "batches": repr(self.planning or self.rows_per_batch),
            "seed": str(self.seed),
            "ranks": str(self.world),
        }

    def load(self, epoch: int, step: int) -> TokenBatch:
        rows, planned = self._epoch(epoch)
        chosen = planned[step].tolist()
        if not chosen:
            return self._batch(rows, [0], epoch).select([])
        return self._batch(rows, chosen, epoch)

    def spans_of(self, epoch: int, step: int) -> np.ndarray:
        """(B, L) which of `spans` each token of a batch belongs to; -1 is padding."""
        rows, planned = self._epoch(epoch)
        pieces = [rows.pieces(row) for row in planned[step].tolist()]
        width = max((sum(piece.end - piece.start for piece in row) for row in pieces), default=0)
        found = np.full((len(pieces), width), -1, np.int64)
        for target, row in zip(found, pieces, strict=True):
            numbers = np.repeat([piece.span for piece in row], [piece.end - piece.start for piece in row])
            target[: len(numbers)] = numbers
        return found

    def _batch(self, rows: Rows, chosen: list[int], epoch: int) -> TokenBatch:
        tokens, pieces = self.spans.file.tokens, [rows.pieces(row) for row in chosen]
        return collate_tokens(
            [[np.asarray(tokens[piece.start : piece.end]) for piece in row] for row in pieces],
            ids=[self._id(row[0]) for row in pieces],
            passes=[epoch] * len(pieces),
        )

    def _id(self, piece: Piece) -> str:
        """The document that a row begins in, and at which of its tokens."""
        file = self.spans.file
        document = int(self.spans.documents[piece.span])
        return f"{file.id(document)}@{piece.start - int(file.starts[document])}"

    def _epoch(self, epoch: int) -> tuple[Rows, Plan]:
        """The rows of an epoch and how they meet."""
        return self._epochs[epoch if self.packing.is_shuffled or self.planning else 0]

    def _made(self, epoch: int) -> tuple[Rows, Plan]:
        config = self.packing
        rows = rows_of(
            self.spans,
            config.block_size,
            config.packing,
            seed=self.seed,
            epoch=epoch,
            is_shuffled=config.is_shuffled,
        )
        sizes = rows.sizes
        if self.planning is None:
            count = len(sizes)
            ends = np.minimum(np.arange(self.rows_per_batch, count + self.rows_per_batch, self.rows_per_batch), count)
            return rows, Plan(np.arange(count), ends, self.rank, self.world)
        return rows, plan(
            sizes,
            self.planning,
            seed=self.seed,
            epoch=epoch,
            rank=self.rank,
            world=self.world,
            group=self.group,
        )
