"""What a recogniser makes of utterances whose texts are known: errors by word and by character, and the loss.

rows = recognition_rows(model, batches, spelling, objective)      # on each rank its share
recognition_figures(rows)                                         # {"wer": …, "cer": …, "substitutions": …, "loss": …}

Scores are made once and may be decoded in several ways. What is longer than a transcriber's window is heard in windows,
and nothing is said in silence, as it is when it is transcribed; losses are those of the model itself. Both texts are
compared as the tokenizer normalises them; substitutions, deletions and insertions are those of words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sonant.base.lengths import Lengths
from sonant.batches.batch import SpeechBatch
from sonant.decoding.decoder import Decoder
from sonant.decoding.hypotheses import Hypothesis
from sonant.decoding.passages import PassageCutter, join_answers
from sonant.decoding.spelling import Spelling
from sonant.evaluation.speed import Stopwatch
from sonant.evaluation.table import Row
from sonant.inference.scoring import is_silent, nothing_said
from sonant.inference.transcriber import Transcriber
from sonant.metrics.edits import character_edits, word_edits
from sonant.objectives.ctc import Ctc

MEASURES = ("wer", "cer", "substitutions", "deletions", "insertions", "loss")
ORACLE = "oracle"  # word errors of the best among several answers


@dataclass(frozen=True, eq=False)
class Scored:
    """A batch of which the model has said what it hears."""

    batch: SpeechBatch
    log_probs: np.ndarray  # (B, T, V)
    lengths: Lengths
    losses: list[list[float]]  # of each utterance: nats, and what they are counted by
    window: int  # frames; what is longer is decoded in passages

    def answers(self, decoder: Decoder, num_best: int = 1) -> list[list[Hypothesis]]:
        """Of each utterance, best first, as a transcriber finds them."""
        if self.lengths.longest <= self.window:
            return decoder(self.log_probs, self.lengths, num_best)
        counts = self.lengths.values.tolist()
        return [
            _passage_by_passage(rows[:count], decoder, self.window, num_best)
            for rows, count in zip(self.log_probs, counts, strict=True)
        ]

    def references(self, spelling: Spelling) -> list[str]:
        return [spelling.tokenizer.normalizer(text or "") for text in self.batch.texts]


@torch.no_grad()
def scored_batches(
    model: nn.Module,
    batches: Iterable[SpeechBatch],
    spelling: Spelling,
    objective: Ctc,
    *,
    device: torch.device | str = "cpu",
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
    watch: Stopwatch | None = None,
) -> Iterator[Scored]:
    """The model is left in the mode that it was in."""
    transcriber, watch = Transcriber(model, spelling, device=str(device)), watch or Stopwatch()
    was_training = model.training
    model.eval()
    for batch in watch.waits("reading", batches):
        if len(batch):
            with watch("network"), autocast():
                log_probs, lengths = _scores(transcriber, batch.to(device))
                losses = torch.stack(objective.losses_of(log_probs, lengths, batch.to(device)), dim=1).tolist()
                frames = Lengths(lengths.values.cpu().numpy())
                audible = _without_silence(log_probs.cpu().numpy(), frames, batch, spelling)
                found = Scored(batch, audible, frames, losses, _window(transcriber))
            yield found
    model.train(was_training)


def _without_silence(log_probs: np.ndarray, lengths: Lengths, batch: SpeechBatch, spelling: Spelling) -> np.ndarray:
    """The same scores (B, T, V), but for utterances in which there is nothing to hear."""
    heard = zip(batch.waveforms.numpy(), batch.lengths.values.tolist(), lengths.values.tolist(), strict=True)
    for row, (samples, num_samples, num_frames) in enumerate(heard):
        if is_silent(samples[:num_samples]):
            log_probs[row, :num_frames] = nothing_said(num_frames, spelling)
    return log_probs


def _window(transcriber: Transcriber) -> int:
    return int(transcriber.config.window_seconds / transcriber.frame_seconds)


def _passage_by_passage(log_probs: np.ndarray, decoder: Decoder, longest: int, num_best: int) -> list[Hypothesis]:
    """Answers of scores (T, V)."""
    cutter = PassageCutter(decoder.spelling, longest, ends_words=decoder.guide is not None)
    passages = [*cutter.push(log_probs), *cutter.finish()]
    lengths = [Lengths(np.array([len(one.log_probs)])) for one in passages]
    found = [decoder(one.log_probs[None], count, num_best)[0] for one, count in zip(passages, lengths, strict=True)]
    return join_answers(list(zip(passages, found, strict=True)), decoder.spelling, num_best)


def _scores(transcriber: Transcriber, batch: SpeechBatch) -> tuple[Tensor, Lengths]:
    if transcriber.model.num_frames(batch.lengths.longest) <= _window(transcriber):
        scores = transcriber.model(batch.waveforms, batch.lengths)
        return scores.log_probs, scores.lengths
    samples, counts = batch.waveforms.cpu().numpy(), batch.lengths.values.tolist()
    found = transcriber.log_probs([row[:count] for row, count in zip(samples, counts, strict=True)])
    device = batch.waveforms.device
    lengths = Lengths(torch.tensor([len(rows) for rows in found], device=device))
    padded = nn.utils.rnn.pad_sequence([torch.from_numpy(rows).to(device) for rows in found], batch_first=True)
    return padded, lengths


def recognition_rows(
    model: nn.Module, batches: Iterable[SpeechBatch], spelling: Spelling, objective: Ctc, **options: Any
) -> list[Row]:
    """A row for each utterance, in the order of the batches, of the best symbols of its frames."""
    decoder, scored = Decoder(spelling), scored_batches(model, batches, spelling, objective, **options)
    return [row for one in scored for row in rows_of(one, one.answers(decoder), spelling)]


def rows_of(
    scored: Scored, answers: Sequence[Sequence[Hypothesis]], spelling: Spelling, *, has_oracle: bool = False
) -> list[Row]:
    """A row for each utterance of a batch, of its first answer; the oracle is the answer with the fewest errors."""
    rows = []
    for place, (reference, some) in enumerate(zip(scored.references(spelling), answers, strict=True)):
        row = recognition_row(scored.batch, place, reference, some[0].text, scored.losses[place])
        if has_oracle:
            fewest = min(word_edits(reference, one.text).errors for one in some)
            totals, counts = {**row.totals, ORACLE: float(fewest)}, {**row.counts, ORACLE: row.counts["wer"]}
            row = replace(row, totals=totals, counts=counts)
        rows.append(row)
    return rows


def recognition_figures(rows: Sequence[Row]) -> dict[str, float]:
    """Those of all utterances together, never means of rates."""
    figures = {}
    for measure in rows[0].totals if rows else MEASURES:
        count = sum(row.counts[measure] for row in rows)
        figures[measure] = sum(row.totals[measure] for row in rows) / count if count else float("nan")
    return figures


def recognition_row(batch: SpeechBatch, row: int, reference: str, hypothesis: str, loss: Sequence[float]) -> Row:
    """Both texts as they are compared; the loss comes with its count."""
    words, characters = word_edits(reference, hypothesis), character_edits(reference, hypothesis)
    of_words = {"wer": words.errors, "substitutions": words.substitutions}
    of_words |= {"deletions": words.deletions, "insertions": words.insertions}
    counts = dict.fromkeys(of_words, float(words.num_reference)) | {"cer": float(characters.num_reference)}
    totals = {name: float(count) for name, count in of_words.items()} | {"cer": float(characters.errors)}
    return Row(
        id=batch.ids[row],
        group=batch.speakers[row],
        seconds=float(batch.lengths.values[row]) / batch.sample_rate,
        reference=reference,
        hypothesis=hypothesis,
        totals={name: (totals | {"loss": loss[0]})[name] for name in MEASURES},
        counts={name: (counts | {"loss": loss[1]})[name] for name in MEASURES},
    )
