"""What the trainer asks of a language model from time to time: figures by document, and texts to read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
from torch import nn

from sonant.base import storage
from sonant.base.bounds import Within, check_fields
from sonant.batches.tokens.source import PackingConfig, TokenSource
from sonant.batches.tokens.spans import Spans
from sonant.evaluation.language import document_rows, language_figures, score_documents
from sonant.evaluation.table import Evaluation, Facts, Row
from sonant.inference.generation import GenerationConfig, generate
from sonant.objectives.next_token import NextToken
from sonant.recipes.run_files import keep_rows
from sonant.reports.page import Block, section, table
from sonant.text.tokenizer import Tokenizer
from sonant.training.engine import Engine
from sonant.training.run_folder import RunFolder

if TYPE_CHECKING:
    from sonant.recipes.language import Config

SAMPLES = "samples.json"  # of the run: of each validation


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    rows_per_batch: Annotated[int, Within(1, 1e6)] = 8
    num_samples: Annotated[int, Within(0, 100)] = 2  # texts to read, at each validation
    prompt: str = ""
    generation: GenerationConfig = field(default_factory=lambda: GenerationConfig(max_tokens=100))

    def __post_init__(self) -> None:
        check_fields(self)


class Validation:
    """What the trainer asks of the model from time to time; the table and the texts of the last time are kept."""

    def __init__(
        self, config: Config, engine: Engine, run: RunFolder, tokenizer: Tokenizer, spans: Spans, size: int
    ) -> None:
        self.config, self.engine, self.run, self.tokenizer, self.spans = config, engine, run, tokenizer, spans
        self.objective = NextToken(config.documents)
        self.source = TokenSource(
            spans,
            PackingConfig(block_size=size, packing=config.packing, is_shuffled=False),
            rows_per_batch=config.validation.rows_per_batch,
            rank=engine.rank,
            world=engine.world,
        )
        self.rows: tuple[Row, ...] = ()

    def validate(self, model: nn.Module, step: int) -> Mapping[str, float]:
        totals = score_documents(model, self.source, self.objective, device=self.engine.device)
        self.rows = document_rows(np.sum(self.engine.gather(totals), axis=0), self.spans, self.tokenizer)
        if self.engine.is_main and not self.engine.is_sharded:
            self._draw(model, step)
        return language_figures(self.rows)

    def write_table(self, bundle: str) -> None:
        """The rows behind the figures of the best weights."""
        facts = Facts(
            task="language",
            bundle=bundle,
            data=self.spans.file.fingerprint,
            split=self.config.texts.validation_split,
            settings={"block_size": self.source.packing.block_size},
        )
        keep_rows(self.run, Evaluation(facts, self.rows))

    def sections(self) -> Sequence[Block]:
        """Texts that the model wrote, the newest first."""
        rows = [[step, text] for step, texts in sorted(self._samples().items(), reverse=True) for text in texts]
        columns, prompt = ["step", "text"], self.config.validation.prompt
        note = f"Drawn by itself behind \u201c{prompt}\u201d." if prompt else "Drawn by itself."
        return [section("Samples", table(columns, rows[:8], is_sortable=False), note=note)] if rows else []

    def _draw(self, model: nn.Module, step: int) -> None:
        wanted = self.config.validation
        if not wanted.num_samples:
            return
        draw = partial(generate, model, self.tokenizer, wanted.prompt, wanted.generation)
        texts = [wanted.prompt + draw(number=number) for number in range(wanted.num_samples)]
        found = {number: old for number, old in self._samples().items() if number < step} | {step: texts}
        storage.write_text(self.run.path(SAMPLES), json.dumps(found, ensure_ascii=False, indent=1))

    def _samples(self) -> dict[int, list[str]]:
        where = self.run.path(SAMPLES)
        found = json.loads(storage.read_bytes(where)) if os.path.exists(where) else {}
        return {int(step): texts for step, texts in found.items()}
