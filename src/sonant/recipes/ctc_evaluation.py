"""What a recogniser's bundle is worth on a corpus: measured as its training measured it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from sonant.base import config as configs
from sonant.batches.bucketing import SortingConfig
from sonant.batches.collate import collate_speech
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.batches.loader import Loader
from sonant.batches.source import CorpusSource
from sonant.checkpoints.bundle import Bundle
from sonant.corpus.manifest import Corpus
from sonant.decoding.spelling import Spelling
from sonant.evaluation.recognition import recognition_figures, recognition_rows
from sonant.evaluation.recognition_page import recognition_page
from sonant.evaluation.table import Evaluation, Facts, fingerprint_of
from sonant.metrics.intervals import BootstrapConfig, Interval
from sonant.objectives.ctc import Ctc, CtcConfig
from sonant.recipes.speech import CorporaConfig, fingerprints, measured_corpora, told
from sonant.recipes.transcripts import tell_unknown, unknown_characters
from sonant.text.tokenizer import load_tokenizer


def evaluate(
    bundle: Bundle, data: Sequence[str], split: str | None, device: str, say: Callable[[str], None]
) -> Evaluation:
    """A row for each utterance; without data, of what the training validated with."""
    settings = bundle.description.evaluation
    found, split = _corpora(bundle, data, split)
    tokenizer = load_tokenizer(bundle.folder)
    tell_unknown(split, unknown_characters(found, tokenizer), say)
    model: Any = bundle.model().to(device)
    spelling = Spelling(tokenizer)
    objective = Ctc(CtcConfig(), model.num_frames, spelling.blank_id)
    examples = SpeechExamples(ExampleConfig(sample_rate=model.sample_rate), encode=tokenizer.encode)
    source = CorpusSource(found, examples, collate_speech, SortingConfig(max_seconds=settings["batch_seconds"]))
    began = time.perf_counter()
    with Loader(source) as loader:
        rows = recognition_rows(model, loader, spelling, objective, device=device)
    taken = (time.perf_counter() - began) / sum(row.seconds or 0.0 for row in rows)
    say(f"{told(found)} of '{split}', in {taken:.4f} of their duration")
    facts = Facts(
        task="ctc",
        bundle=fingerprint_of(bundle.path("model.safetensors")),
        data=fingerprints(found),
        split=split,
        settings={"decoding": bundle.description.decoding, "real_time_factor": taken},
    )
    return Evaluation(facts, tuple(sorted(rows, key=lambda row: row.id)))


def page(
    bundle: Bundle,
    data: Sequence[str],
    evaluation: Evaluation,
    by: Sequence[str],
    bootstrap: BootstrapConfig,
) -> str:
    """A page to read; `by` are columns of the manifest, or labels, that utterances are grouped by."""
    found, _ = _corpora(bundle, data, evaluation.facts.split)
    groups = {column: _values(found, column) for column in by}
    return recognition_page(bundle.folder, evaluation, intervals(evaluation, bootstrap), groups, bootstrap)


def _corpora(bundle: Bundle, data: Sequence[str], split: str | None) -> tuple[list[Corpus], str]:
    corpora = configs.from_dict(CorporaConfig, bundle.description.evaluation["corpora"], bundle.folder)
    return measured_corpora(corpora, data, split)


def _values(corpora: Sequence[Corpus], column: str) -> dict[str, str]:
    """The value of each utterance by id; numbers as they are written."""
    found: dict[str, str] = {}
    for corpus in corpora:
        values = corpus.column(column)
        found |= {str(id): _written(value) for id, value in zip(corpus.column("id"), values, strict=True)}
    return found


def _written(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "unknown"
    return f"{value:g}" if isinstance(value, float) else str(value)


def figures(evaluation: Evaluation) -> dict[str, float]:
    """Those of the training, by the same names."""
    return recognition_figures(evaluation.rows)


def intervals(evaluation: Evaluation, config: BootstrapConfig) -> dict[str, Interval]:
    """By speaker."""
    return {measure: evaluation.interval(measure, config) for measure in evaluation.measures}
