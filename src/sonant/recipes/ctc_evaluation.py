"""What a recogniser's bundle is worth on a corpus: measured as its training measured it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
from sonant.evaluation.breakdown import Group, broken_down
from sonant.evaluation.recognition import Scored, recognition_figures, rows_of, scored_batches
from sonant.evaluation.recognition_page import recognition_page
from sonant.evaluation.speed import Stopwatch
from sonant.evaluation.table import Evaluation, Facts, Row, fingerprint_of
from sonant.metrics.intervals import BootstrapConfig, Interval
from sonant.objectives.ctc import Ctc, CtcConfig
from sonant.recipes.ctc_decoding import a_share, choose
from sonant.recipes.decoding import Asked
from sonant.recipes.saved_decoding import save_decoding
from sonant.recipes.speech import CorporaConfig, fingerprints, measured_corpora, told
from sonant.recipes.transcripts import tell_unknown, unknown_characters
from sonant.text.tokenizer import load_tokenizer


def evaluate(
    bundle: Bundle,
    data: Sequence[str],
    split: str | None,
    device: str,
    say: Callable[[str], None],
    asked: Asked | None = None,
) -> Evaluation:
    """A row for each utterance; without data, of what the training validated with."""
    asked, watch, kept = asked or Asked(), Stopwatch(), dict[str, list[Scored]]()
    found, split = _corpora(bundle, data, split)
    hearing = _Hearing(bundle, device)
    tell_unknown(split, unknown_characters(found, hearing.spelling.tokenizer), say)

    def scores_of(name: str) -> list[Scored]:
        """Of the split to choose on; where it is the one to measure, all of it is heard once for both."""
        corpora, _ = _corpora(bundle, data, name)
        part = a_share(corpora, hearing.cells_per_second, say)
        is_measured = name == split and sum(map(len, part)) == sum(map(len, corpora))
        say(f"{told(part)} of '{name}' are heard, to choose a decoding on")
        scores = list(hearing.scores(part, watch if is_measured else Stopwatch()))
        if is_measured:
            kept[name] = scores
        return scores

    chosen = choose(bundle, hearing.spelling, asked, scores_of, device, say)
    rows = list[Row]()
    for one in kept.get(split) or hearing.scores(found, watch):
        with watch("decoding"):
            answers = one.answers(chosen.decoder, asked.num_best)
        rows += rows_of(one, answers, hearing.spelling, has_oracle=asked.num_best > 1)
    speed = watch.shares(sum(row.seconds or 0.0 for row in rows))
    facts = Facts(
        task="ctc",
        bundle=fingerprint_of(bundle.path("model.safetensors")),
        data=fingerprints(found),
        split=split,
        settings={**chosen.facts(asked), "real_time_factor": speed},
    )
    return Evaluation(facts, tuple(sorted(rows, key=lambda row: row.id)))


def keep_decoding(bundle: Bundle, evaluation: Evaluation) -> None:
    """The bundle decodes from now on as it did here."""
    save_decoding(bundle, evaluation)


class _Hearing:
    """The recogniser of a bundle, which scores corpora as its training validated."""

    def __init__(self, bundle: Bundle, device: str) -> None:
        self.model: Any = bundle.model().to(device)
        self.tokenizer, self.device = load_tokenizer(bundle.folder), device
        self.spelling = Spelling(self.tokenizer)
        self.batch_seconds: float = bundle.description.evaluation["batch_seconds"]

    @property
    def cells_per_second(self) -> float:
        frames: float = self.model.sample_rate / self.model.samples_per_frame
        return frames * self.tokenizer.size

    def scores(self, corpora: Sequence[Corpus], watch: Stopwatch) -> Iterator[Scored]:
        objective = Ctc(CtcConfig(), self.model.num_frames, self.spelling.blank_id)
        examples = SpeechExamples(ExampleConfig(sample_rate=self.model.sample_rate), encode=self.tokenizer.encode)
        source = CorpusSource(corpora, examples, collate_speech, SortingConfig(max_seconds=self.batch_seconds))
        with Loader(source) as loader:
            yield from scored_batches(self.model, loader, self.spelling, objective, device=self.device, watch=watch)


def page(
    bundle: Bundle,
    data: Sequence[str],
    evaluation: Evaluation,
    by: Sequence[str],
    bootstrap: BootstrapConfig,
) -> str:
    """A page to read; `by` are columns of the manifest, or labels, that utterances are grouped by."""
    values = _grouping(bundle, data, evaluation, by)
    return recognition_page(bundle.folder, evaluation, intervals(evaluation, bootstrap), values, bootstrap)


def groups(
    bundle: Bundle, data: Sequence[str], evaluation: Evaluation, by: Sequence[str], bootstrap: BootstrapConfig
) -> dict[str, list[Group]]:
    """The same groups by themselves."""
    values = _grouping(bundle, data, evaluation, by)
    return {column: broken_down(evaluation, found, bootstrap) for column, found in values.items()}


def _grouping(
    bundle: Bundle, data: Sequence[str], evaluation: Evaluation, by: Sequence[str]
) -> dict[str, dict[str, str]]:
    found, _ = _corpora(bundle, data, evaluation.facts.split)
    return {column: _values(found, column) for column in by}


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
