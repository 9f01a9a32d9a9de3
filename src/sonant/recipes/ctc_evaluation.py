"""What a recogniser's bundle is worth on a corpus: measured as its training measured it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sonant.base import config as configs
from sonant.batches.bucketing import SortingConfig
from sonant.batches.collate import collate_speech
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.batches.loader import Loader
from sonant.batches.source import CorpusSource
from sonant.checkpoints.bundle import Bundle
from sonant.decoding.spelling import Spelling
from sonant.evaluation.recognition import recognition_figures, recognition_rows
from sonant.evaluation.table import Evaluation, Facts, fingerprint_of
from sonant.metrics.intervals import BootstrapConfig, Interval
from sonant.objectives.ctc import Ctc, CtcConfig
from sonant.recipes.speech import CorporaConfig, told, validation_corpora
from sonant.recipes.transcripts import tell_unknown, unknown_characters
from sonant.text.tokenizer import load_tokenizer


def evaluate(
    bundle: Bundle, data: Sequence[str], split: str | None, device: str, say: Callable[[str], None]
) -> Evaluation:
    """A row for each utterance; without data, of what the training validated with."""
    settings = bundle.description.evaluation
    corpora = configs.from_dict(CorporaConfig, settings["corpora"], bundle.folder)
    if data:
        # Somebody's own data is measured whole, however long its utterances are.
        corpora = replace(corpora, validation=tuple(data), min_seconds=0.0, max_seconds=1e5)
    corpora = replace(corpora, validation_split=split or corpora.validation_split)
    found = validation_corpora(corpora)
    tokenizer = load_tokenizer(bundle.folder)
    tell_unknown(corpora.validation_split, unknown_characters(found, tokenizer), say)
    model = bundle.model().to(device)
    spelling = Spelling(tokenizer)
    objective = Ctc(CtcConfig(), model.num_frames, spelling.blank_id)  # type: ignore[arg-type]
    examples = SpeechExamples(
        ExampleConfig(sample_rate=bundle.description.front_end["sample_rate"]), encode=tokenizer.encode
    )
    source = CorpusSource(found, examples, collate_speech, SortingConfig(max_seconds=settings["batch_seconds"]))
    say(f"{told(found)} of '{corpora.validation_split}'")
    with Loader(source) as loader:
        rows = recognition_rows(model, loader, spelling, objective, device=device)
    facts = Facts(
        task="ctc",
        bundle=fingerprint_of(bundle.path("model.safetensors")),
        data=" ".join(corpus.description.get("fingerprint", "") for corpus in found),
        split=corpora.validation_split,
        settings={"decoding": bundle.description.decoding},
    )
    return Evaluation(facts, tuple(sorted(rows, key=lambda row: row.id)))


def figures(evaluation: Evaluation) -> dict[str, float]:
    """Those of the training, by the same names."""
    return recognition_figures(evaluation.rows)


def intervals(evaluation: Evaluation, config: BootstrapConfig) -> dict[str, Interval]:
    """By speaker."""
    return {measure: evaluation.interval(measure, config) for measure in evaluation.measures}
