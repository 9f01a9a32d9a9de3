"""What the trainer asks of an encoder from time to time; the rows of the last time are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sonant.corpus.manifest import Corpus
from sonant.evaluation.pretraining import measured, together
from sonant.evaluation.table import Evaluation
from sonant.recipes.pretrain_evaluation import MeasuringConfig, figures, fixed_batches, table_of
from sonant.recipes.pretrain_learning import objective_of
from sonant.recipes.probing import probe_figures
from sonant.recipes.run_files import keep_rows
from sonant.training.engine import Engine
from sonant.training.run_folder import RunFolder


class Validation:
    def __init__(
        self, engine: Engine, run: RunFolder, measuring: MeasuringConfig, corpora: Sequence[Corpus], model: Any
    ) -> None:
        self.engine, self.run, self.measuring, self.corpora = engine, run, measuring, corpora
        self.objective = objective_of(measuring.learning, 0)
        self.batches = fixed_batches(measuring, corpora, model, rank=engine.rank, world=engine.world)
        self.found: Evaluation | None = None

    def validate(self, model: Any, step: int) -> Mapping[str, float]:
        share = measured(model, self.objective, self.batches, self.engine.device)
        found, probe, config = together(self.engine.gather(share)), {}, self.measuring.probe
        if config.corpus:
            probe = self.engine.on_main(lambda: probe_figures(model.encoder, config, self.engine.device))
        self.found = table_of(found, self.corpora, self.measuring.corpora.validation_split, "", probe)
        return figures(self.found)

    def write_table(self, bundle: str) -> None:
        """The rows behind the figures of the best weights."""
        if self.found:
            facts = replace(self.found.facts, bundle=bundle)
            keep_rows(self.run, replace(self.found, facts=facts))
