"""What the bundle of a recogniser that writes is worth on a corpus: measured as its training measured it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sonant.base import config as configs
from sonant.base.errors import UsageError
from sonant.batches.bucketing import SortingConfig
from sonant.batches.collate import collate_speech
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.batches.loader import Loader
from sonant.batches.source import CorpusSource
from sonant.checkpoints.bundle import Bundle, describe_anew
from sonant.evaluation.speed import Stopwatch
from sonant.evaluation.table import Evaluation, Facts, fingerprint_of
from sonant.evaluation.written import written_rows
from sonant.inference.writing_transcriber import WritingTranscriber
from sonant.objectives.seq2seq import Seq2Seq, Seq2SeqConfig
from sonant.recipes.decoding import Asked
from sonant.recipes.recognition_evaluation import corpora_of, figures, groups, intervals, page
from sonant.recipes.seq2seq_decoding import asked_writing, writing_in_words
from sonant.recipes.speech import fingerprints
from sonant.recipes.transcripts import tell_unknown, unknown_characters
from sonant.text.normalize import Normalizer, NormalizerConfig

__all__ = ["evaluate", "figures", "groups", "intervals", "keep_decoding", "page"]


def evaluate(
    bundle: Bundle,
    data: Sequence[str],
    split: str | None,
    device: str,
    say: Callable[[str], None],
    asked: Asked | None = None,
) -> Evaluation:
    """A row for each utterance; without data, of what the training validated with."""
    settings, watch, asked = bundle.description.evaluation, Stopwatch(), asked or Asked()
    if asked.tune or asked.num_best > 1:
        option = "--tune" if asked.tune else "--num-best"
        problem = "a model that writes token by token is measured by its first answer, as it is told to write."
        raise UsageError(option, problem, "Leave it out; --beam can be set.")
    writing = asked_writing(bundle, asked.settings, is_greedy=asked.is_greedy)
    found, split = corpora_of(bundle, data, split)
    transcriber = WritingTranscriber.open(bundle.folder, device, writing=writing)
    tokenizer, model = transcriber.spelling.tokenizer, transcriber.model
    tell_unknown(split, unknown_characters(found, tokenizer), say)
    compared = configs.from_dict(NormalizerConfig, settings["compared"], bundle.folder)
    objective = Seq2Seq(Seq2SeqConfig(), model.num_frames, transcriber.prompt)
    examples = SpeechExamples(ExampleConfig(sample_rate=model.sample_rate), encode=tokenizer.encode)
    source = CorpusSource(found, examples, collate_speech, SortingConfig(max_seconds=settings["batch_seconds"]))
    with Loader(source) as loader:
        rows = written_rows(transcriber, loader, objective, Normalizer(compared), watch)
    facts = Facts(
        task="seq2seq",
        bundle=fingerprint_of(bundle.path("model.safetensors")),
        data=fingerprints(found),
        split=split,
        settings={
            "decoding": configs.to_dict(writing),
            "decoded": writing_in_words(writing),
            "real_time_factor": watch.shares(sum(row.seconds or 0.0 for row in rows)),
        },
    )
    return Evaluation(facts, tuple(sorted(rows, key=lambda row: row.id)))


def keep_decoding(bundle: Bundle, evaluation: Evaluation) -> None:
    """The bundle writes from now on as it did here."""
    settings: Any = evaluation.facts.settings
    describe_anew(bundle, replace(bundle.description, decoding=settings["decoding"]))
