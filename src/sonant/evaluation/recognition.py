"""What a recogniser makes of utterances whose texts are known: errors by word and by character, and the loss.

rows = recognition_rows(model, batches, spelling)      # on each rank its share
recognition_figures(rows)                              # {"wer": …, "cer": …, "substitutions": …, "loss": …}

Both texts are compared as the tokenizer normalises them; substitutions, deletions and insertions are those of words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import nn

from sonant.base.lengths import Lengths
from sonant.batches.batch import SpeechBatch
from sonant.decoding.decoders import decode_greedily
from sonant.decoding.hypotheses import Hypothesis
from sonant.decoding.spelling import Spelling
from sonant.evaluation.table import Row
from sonant.metrics.edits import character_edits, word_edits
from sonant.objectives.ctc import Ctc

Decode = Callable[[np.ndarray, Lengths, Spelling], Sequence[Hypothesis]]
MEASURES = ("wer", "cer", "substitutions", "deletions", "insertions", "loss")


@torch.no_grad()
def recognition_rows(
    model: nn.Module,
    batches: Iterable[SpeechBatch],
    spelling: Spelling,
    objective: Ctc,
    *,
    decode: Decode = decode_greedily,
    device: torch.device | str = "cpu",
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> list[Row]:
    """A row for each utterance, in the order of the batches."""
    was_training = model.training
    model.eval()
    rows: list[Row] = []
    for batch in batches:
        if not len(batch):
            continue
        moved = batch.to(device)
        with autocast():
            scores = model(moved.waveforms, moved.lengths)
        log_probs = scores.log_probs
        losses = torch.stack(objective.losses_of(log_probs, scores.lengths, moved), dim=1).tolist()
        lengths = Lengths(scores.lengths.values.cpu().numpy())
        answers = decode(log_probs.cpu().numpy(), lengths, spelling)
        normalized = spelling.tokenizer.normalizer
        rows += [
            recognition_row(batch, row, normalized(batch.texts[row] or ""), answer.text, loss)
            for row, (answer, loss) in enumerate(zip(answers, losses, strict=True))
        ]
    model.train(was_training)
    return rows


def recognition_figures(rows: Sequence[Row]) -> dict[str, float]:
    """Those of all utterances together, never means of rates."""
    figures = {}
    for measure in MEASURES:
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
