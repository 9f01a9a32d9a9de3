"""Corpora as batches: which utterances meet when, each read and all laid side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from sonant.base.errors import ManifestError
from sonant.batches.bucketing import PlanConfig, SortingConfig, plan
from sonant.batches.loader import Batch
from sonant.batches.mixing import MixingConfig, Mixture, Selection
from sonant.batches.plans import Epochs, Plan
from sonant.corpus.manifest import Corpus
from sonant.corpus.utterance import Utterance

_PLAIN = MixingConfig()


class SelectableBatch(Batch, Protocol):
    def select(self, rows: Sequence[int]) -> Self: ...


E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
B = TypeVar("B", bound=SelectableBatch)


class ExampleMaker(Protocol[E_co]):
    """Turns utterances into examples: `SpeechExamples`, or whatever else a recipe learns from."""

    def __call__(self, utterance: Utterance, pass_number: int, /) -> E_co | None:
        """The example, or None for one that is to be left out; a function of its arguments."""
        ...

    def sizes(self, corpus: Corpus) -> np.ndarray:
        """How large each example will be, in the unit that batches are planned in."""
        ...


class CorpusSource(Generic[E, B]):
    """The share of one rank; every batch can be made by any worker at any time.

    `collate` lays one or more examples side by side and is told how many were left out. `group` batches in a
    row are of similar duration, by default as many as there are ranks.
    """

    def __init__(
        self,
        corpora: Sequence[Corpus],
        examples: ExampleMaker[E],
        collate: Callable[[Sequence[E], int], B],
        planning: PlanConfig,
        *,
        mixing: MixingConfig = _PLAIN,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        group: int | None = None,
    ) -> None:
        self.corpora, self.examples, self.collate, self.planning = list(corpora), examples, collate, planning
        self.seed, self.rank, self.world, self.group = seed, rank, world, group
        self.mixture = Mixture([len(corpus) for corpus in corpora], mixing, seed=seed)
        self.sizes = np.concatenate([examples.sizes(corpus) for corpus in corpora])
        self.firsts = np.concatenate([[0], np.cumsum(self.mixture.sizes)[:-1]])  # where each corpus begins in `sizes`
        self.mixing = mixing
        self._epochs = Epochs(self._plan)

    def num_steps(self, epoch: int) -> int:
        return len(self.epoch(epoch)[1])

    def num_overlong(self, epoch: int) -> int:
        return len(self.epoch(epoch)[1].overlong)

    def largest(self) -> list[int]:
        selection, planned = self.epoch(0)
        return planned.largest(self.sizes[self.firsts[selection.corpora] + selection.rows])

    def conditions(self) -> Mapping[str, str]:
        digest = hashlib.blake2b(np.ascontiguousarray(self.sizes).tobytes(), digest_size=6).hexdigest()
        return {
            "utterances": f"{len(self.sizes)} ({digest})",
            "batches": repr(self.planning),
            "mixing": repr(self.mixing),
            "seed": str(self.seed),
            "ranks": str(self.world),
        }

    def epoch(self, epoch: int) -> tuple[Selection, Plan]:
        """What an epoch takes and how it is cut; the plan counts along the selection."""
        if isinstance(self.planning, SortingConfig):
            epoch = 0  # an evaluation is the same however often it is made
        return self._epochs[epoch]

    def load(self, epoch: int, step: int) -> B:
        selection, planned = self.epoch(epoch)
        places = planned[step]
        examples = self._read(selection, places)
        if examples:
            return self.collate(examples, len(places) - len(examples))
        return self._empty(selection, planned, num_skipped=len(places))

    def _plan(self, epoch: int) -> tuple[Selection, Plan]:
        selection = self.mixture.epoch(epoch)
        sizes = self.sizes[self.firsts[selection.corpora] + selection.rows]
        return selection, plan(
            sizes,
            self.planning,
            seed=self.seed,
            epoch=epoch,
            rank=self.rank,
            world=self.world,
            group=self.group,
        )

    def _read(self, selection: Selection, places: np.ndarray) -> list[E]:
        """The examples at these places of a selection, in their order, less those that are left out."""
        utterances: list[Utterance | None] = [None] * len(places)
        for number, corpus in enumerate(self.corpora):
            mine = np.flatnonzero(selection.corpora[places] == number)
            for place, utterance in zip(mine, corpus.take(selection.rows[places[mine]]), strict=True):
                utterances[place] = utterance
        passes = selection.passes[places].tolist()
        made = (
            self.examples(utterance, number) for utterance, number in zip(utterances, passes, strict=True) if utterance
        )
        return [example for example in made if example is not None]

    def _empty(self, selection: Selection, planned: Plan, num_skipped: int) -> B:
        """A batch of none, with every field that the others have: made from the first example to be had."""
        for place in planned.rows:
            if examples := self._read(selection, np.array([place])):
                return self.collate(examples, num_skipped).select([])
        raise ManifestError(
            self.corpora[0].folder,
            f"none of {len(planned.rows)} utterances can be read.",
            "Look whether the recordings are where they were, or prepare the corpus again, which names each fault.",
        )
