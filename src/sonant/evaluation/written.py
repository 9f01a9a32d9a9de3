"""What a recogniser that writes makes of utterances whose texts are known: the same figures as of any other.

Both texts are compared as a normaliser of the evaluation leaves them, since such models write as people do: with
capitals and full stops, which are not heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from sonant.batches.batch import SpeechBatch
from sonant.evaluation.recognition import recognition_row
from sonant.evaluation.speed import Stopwatch
from sonant.evaluation.table import Row
from sonant.inference.writing_transcriber import WritingTranscriber
from sonant.models.writer import limits_of
from sonant.objectives.seq2seq import Seq2Seq

_NONE = (0.0, 0.0)  # no loss, which counts nothing


@torch.no_grad()
def written_rows(
    transcriber: WritingTranscriber,
    batches: Iterable[SpeechBatch],
    objective: Seq2Seq,
    normalized: Callable[[str], str],
    watch: Stopwatch | None = None,
) -> list[Row]:
    """A row for each utterance, in the order of the batches; one that is too long to be learnt has no loss.

    The model is left in the mode that it was in."""
    model: Any = transcriber.model
    was_training, watch = model.training, watch or Stopwatch()
    model.eval()
    rows: list[Row] = []
    for batch in watch.waits("reading", batches):
        if len(batch):
            rows += _rows(transcriber, batch, objective, normalized, watch)
    model.train(was_training)
    return rows


def _rows(
    transcriber: WritingTranscriber,
    batch: SpeechBatch,
    objective: Seq2Seq,
    normalized: Callable[[str], str],
    watch: Stopwatch,
) -> list[Row]:
    counts = batch.lengths.values.tolist()
    samples = [row[:count].numpy() for row, count in zip(batch.waveforms, counts, strict=True)]
    is_plain = _is_plain(transcriber, batch, objective)
    plain = [row for row in range(len(batch)) if is_plain[row]]
    texts, losses = dict[int, str](), dict[int, list[float]]()
    if plain:
        moved = batch.select(plain).to(transcriber.device)
        with watch("network"):
            heard = transcriber.model.hear(moved.waveforms, moved.lengths)
            encoded = transcriber.model.encode(heard)
            found = objective.losses_of(transcriber.model, encoded, heard.lengths, moved)
            losses = dict(zip(plain, torch.stack(found, dim=1).tolist(), strict=True))
        with watch("decoding"):
            written = transcriber.write_all(encoded, heard.lengths, [samples[row] for row in plain])
        texts = {row: answers[0].text for row, answers in zip(plain, written, strict=True)}
    others = [row for row in range(len(batch)) if not is_plain[row]]
    with watch("decoding"):
        written = transcriber.answers([samples[row] for row in others])
    texts |= {row: answers[0].text for row, answers in zip(others, written, strict=True)}
    return [
        recognition_row(batch, row, normalized(batch.texts[row] or ""), normalized(texts[row]), losses.get(row, _NONE))
        for row in range(len(batch))
    ]


def _is_plain(transcriber: WritingTranscriber, batch: SpeechBatch, objective: Seq2Seq) -> list[bool]:
    """Whether each utterance is heard and written at once."""
    assert batch.token_lengths is not None
    most_tokens = limits_of(transcriber.model).most_tokens - len(objective.prompt.ids) - 1
    is_short = batch.lengths.values <= transcriber.window_seconds * batch.sample_rate
    found: list[bool] = (is_short & (batch.token_lengths.values <= most_tokens)).tolist()
    return found
