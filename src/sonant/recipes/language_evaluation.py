"""What a language model's bundle is worth on texts: measured as its training measured it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sonant.base import config as configs
from sonant.batches.tokens.source import PackingConfig, TokenSource
from sonant.checkpoints.bundle import Bundle
from sonant.evaluation.language import document_rows, language_figures, score_documents
from sonant.evaluation.table import Evaluation, Facts, fingerprint_of
from sonant.metrics.intervals import BootstrapConfig, Interval
from sonant.metrics.perplexity import perplexity
from sonant.objectives.next_token import NextToken, NextTokenConfig
from sonant.recipes.texts import TextsConfig, evaluation_spans, token_spans
from sonant.text.tokenizer import load_tokenizer


def evaluate(
    bundle: Bundle, data: Sequence[str], split: str | None, device: str, say: Callable[[str], None]
) -> Evaluation:
    """The table of every document; without data, of what the training kept back."""
    settings = bundle.description.evaluation
    texts = configs.from_dict(TextsConfig, settings["texts"], bundle.folder)
    tokenizer = load_tokenizer(bundle.folder)
    split = split or texts.validation_split
    if data:
        spans = evaluation_spans(texts, tuple(data), split, tokenizer, say)
    else:
        _, spans = token_spans(texts, tokenizer, say)
    packing = PackingConfig(block_size=settings["block_size"], packing=settings["packing"], is_shuffled=False)
    source = TokenSource(spans, packing, rows_per_batch=settings["rows_per_batch"])
    objective = NextToken(configs.from_dict(NextTokenConfig, settings["documents"], bundle.folder))
    totals = score_documents(bundle.model().to(device), source, objective, device=device)
    facts = Facts(
        task="language",
        bundle=fingerprint_of(bundle.path("model.safetensors")),
        data=spans.file.fingerprint,
        split=split,
        settings={"block_size": settings["block_size"]},
    )
    return Evaluation(facts, document_rows(totals, spans, tokenizer))


def figures(evaluation: Evaluation) -> dict[str, float]:
    """Those of the training, by the same names."""
    return language_figures(evaluation.rows)


def intervals(evaluation: Evaluation, config: BootstrapConfig) -> dict[str, Interval]:
    """By document; of figures that are made from others too."""
    found = {measure: evaluation.interval(measure, config) for measure in evaluation.measures}
    for name, source in (("perplexity", "loss"), ("word_perplexity", "loss_per_word")):
        if source in found:
            old = found[source]
            found[name] = Interval(perplexity(old.value), perplexity(old.low), perplexity(old.high))
    return {name: interval for name, interval in found.items() if name != "loss_per_word"}
