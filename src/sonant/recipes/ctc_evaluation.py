"""What a recogniser's bundle is worth on a corpus: measured as its training measured it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sonant.batches.bucketing import SortingConfig
from sonant.batches.collate import collate_speech
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.batches.loader import Loader
from sonant.batches.source import CorpusSource
from sonant.checkpoints.bundle import Bundle
from sonant.corpus.manifest import Corpus
from sonant.decoding.spelling import Spelling
from sonant.evaluation.recognition import Scored, rows_of, scored_batches
from sonant.evaluation.speed import Stopwatch
from sonant.evaluation.table import Evaluation, Facts, Row, fingerprint_of
from sonant.objectives.ctc import Ctc, CtcConfig
from sonant.recipes.ctc_decoding import a_share, choose
from sonant.recipes.decoding import Asked
from sonant.recipes.recognition_evaluation import corpora_of, figures, groups, intervals, page
from sonant.recipes.saved_decoding import save_decoding
from sonant.recipes.speech import fingerprints, told
from sonant.recipes.transcripts import tell_unknown, unknown_characters
from sonant.text.tokenizer import load_tokenizer

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
    asked, watch, kept = asked or Asked(), Stopwatch(), dict[str, list[Scored]]()
    found, split = corpora_of(bundle, data, split)
    hearing = _Hearing(bundle, device)
    tell_unknown(split, unknown_characters(found, hearing.spelling.tokenizer), say)

    def scores_of(name: str) -> list[Scored]:
        """Of the split to choose on; where it is the one to measure, all of it is heard once for both."""
        corpora, _ = corpora_of(bundle, data, name)
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
