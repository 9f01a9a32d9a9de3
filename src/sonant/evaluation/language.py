"""What a language model is worth on texts: loss, perplexity, accuracy, bits per byte, by document and in all.

    totals = score_documents(model, source, objective)       # on each rank its share; the sum over ranks is the whole
    rows = document_rows(totals, source.spans, tokenizer)    # the table of an evaluation
    language_figures(rows)                                   # {"loss": …, "perplexity": …, "accuracy": …, …}

Every token that has one before it is scored, once. A byte or a word that is not scored is not counted either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import nn

from sonant.batches.batch import NO_TOKEN
from sonant.batches.tokens.source import TokenSource
from sonant.batches.tokens.spans import Spans
from sonant.evaluation.table import Row
from sonant.metrics.perplexity import bits, perplexity
from sonant.objectives.next_token import NextToken
from sonant.text.coding import Tokenizer

_NATS, _TOKENS, _CORRECT = range(3)  # columns of totals


@torch.no_grad()
def score_documents(
    model: nn.Module,
    source: TokenSource,
    objective: NextToken,
    *,
    device: torch.device | str = "cpu",
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> np.ndarray:
    """(S, 3) for each span of the source: surprise in nats, tokens scored, tokens that came first."""
    totals = np.zeros((len(source.spans), 3))
    was_training = model.training
    model.eval()
    for step in range(source.num_steps(0)):
        batch = source.load(0, step)
        if not len(batch):
            continue
        with autocast():
            targets, log_probs, is_correct = objective.scores(model, batch.to(device))
        spans = source.spans_of(0, step)[:, 1 : targets.shape[1] + 1]
        is_scored = (targets != NO_TOKEN).cpu().numpy()[:, : spans.shape[1]]
        number = spans[is_scored]
        for column, values in ((_NATS, -log_probs), (_CORRECT, is_correct)):
            weights = values.cpu().numpy()[:, : spans.shape[1]][is_scored].astype(np.float64)
            totals[:, column] += np.bincount(number, weights, len(totals))
        totals[:, _TOKENS] += np.bincount(number, minlength=len(totals))
    model.train(was_training)
    return totals


def document_rows(totals: np.ndarray, spans: Spans, tokenizer: Tokenizer) -> tuple[Row, ...]:
    """A row for each document; one that lies in the spans in part counts with that part."""
    file = spans.file
    is_whole = (spans.starts == file.starts[spans.documents]) & (spans.ends == file.ends[spans.documents])
    sizes, words = file.column("bytes")[spans.documents].copy(), file.column("words")[spans.documents].copy()
    for number in np.flatnonzero(~is_whole):
        text = tokenizer.decode(file.tokens[spans.starts[number] : spans.ends[number]].tolist())
        sizes[number], words[number] = len(text.encode()), len(text.split())
    for number in np.flatnonzero(totals[:, _TOKENS] < spans.lengths):
        head = tokenizer.decode(file.tokens[spans.starts[number] :][:1].tolist())
        sizes[number] -= len(head.encode())
    return tuple(
        _row(file.id(int(document)), found.tolist(), float(size), float(count))
        for document, found, size, count in zip(spans.documents, totals, sizes, words, strict=True)
    )


def _row(id: str, found: Sequence[float], num_bytes: float, words: float) -> Row:
    nats, tokens, correct = found
    totals = {"loss": nats, "accuracy": correct, "bits_per_byte": bits(nats), "loss_per_word": nats}
    counts = {"loss": tokens, "accuracy": tokens, "bits_per_byte": num_bytes, "loss_per_word": words}
    return Row(id=id, totals=totals, counts=counts)


def language_figures(rows: Sequence[Row]) -> dict[str, float]:
    """All of them over all documents."""

    def figure(measure: str) -> float:
        count = sum(row.counts[measure] for row in rows)
        return sum(row.totals[measure] for row in rows) / count if count else float("nan")

    loss = figure("loss")
    return {
        "loss": loss,
        "perplexity": perplexity(loss),
        "accuracy": figure("accuracy"),
        "bits_per_byte": figure("bits_per_byte"),
        "word_perplexity": perplexity(figure("loss_per_word")),
        "tokens": sum(row.counts["loss"] for row in rows),
    }
