"""What the trainer asks of a recogniser from time to time: errors by utterance; and a look at what it learns from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn

from sonant.base import storage
from sonant.batches.batch import SpeechBatch
from sonant.batches.loader import Loader
from sonant.evaluation.recognition import recognition_figures
from sonant.evaluation.table import Evaluation, Facts, Row
from sonant.recipes.run_files import keep_rows
from sonant.reports.page import Block, section, table
from sonant.text.coding import Tokenizer
from sonant.training.engine import Engine
from sonant.training.run_folder import RunFolder

FIRST = "first_batch.json"  # of the run: what it saw first
_SHOWN = 12
Measure = Callable[[nn.Module, Loader[SpeechBatch]], list[Row]]


class Validation:
    """Figures of the model as it is; the rows of the last time are kept."""

    def __init__(
        self,
        engine: Engine,
        run: RunFolder,
        loader: Loader[SpeechBatch],
        measure: Measure,
        *,
        task: str,
        split: str,
    ) -> None:
        self.engine, self.run, self.loader, self.measure = engine, run, loader, measure
        self.task, self.split = task, split
        self.rows: tuple[Row, ...] = ()

    def validate(self, model: nn.Module, step: int) -> Mapping[str, float]:
        own = self.measure(model, self.loader)
        self.rows = tuple(sorted((row for rows in self.engine.gather(own) for row in rows), key=lambda row: row.id))
        return recognition_figures(self.rows)

    def write_table(self, bundle: str) -> None:
        """The rows behind the figures of the best weights."""
        facts = Facts(task=self.task, bundle=bundle, data="", split=self.split)
        keep_rows(self.run, Evaluation(facts, self.rows))

    def sections(self) -> Sequence[Block]:
        """The first batch as it was learnt from, and the worst answers of the last validation."""
        where = self.run.path(FIRST)
        seen = json.loads(storage.read_bytes(where)) if os.path.exists(where) else []
        columns = ["utterance", "seconds", "frames", "tokens", "text as it is learnt"]
        note = "If a text here is not what is said, stop: nothing else will help."
        blocks = [section("The first batch", table(columns, seen), note=note)] if seen else []
        worst = sorted(self.rows, key=lambda row: -row.totals["wer"] / max(row.counts["wer"], 1))[:_SHOWN]
        rows = [[row.id, row.totals["wer"], row.reference, row.hypothesis] for row in worst if row.totals["wer"]]
        if rows:
            blocks.append(section("Worst answers", table(["utterance", "errors", "said", "written"], rows)))
        return blocks

    def look_at(self, batch: SpeechBatch, tokenizer: Tokenizer, num_frames: Callable[[int], Any]) -> None:
        """Keeps what the first batch holds for the page."""
        assert batch.tokens is not None
        assert batch.token_lengths is not None
        rows = []
        for row, id in enumerate(batch.ids[:_SHOWN]):
            num_samples = int(batch.lengths.values[row])
            tokens = batch.tokens[row, : int(batch.token_lengths.values[row])].tolist()
            seconds, frames = num_samples / batch.sample_rate, int(num_frames(num_samples))
            rows.append([id, round(seconds, 2), frames, len(tokens), tokenizer.decode(tokens)])
        storage.write_text(self.run.path(FIRST), json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
