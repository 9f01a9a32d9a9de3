"""How probable texts are to a language model: for choosing among what a recogniser may have heard.

    scorer = Scorer.open("run/bundle")
    scorer.score(["recognise speech", "wreck a nice beach"])   # log-probabilities in nats
    scorer.generate("It was")                                  # and what would follow

A text has the same score whatever stands beside it in a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from sonant.batches.batch import NO_TOKEN
from sonant.checkpoints.bundle import open_bundle
from sonant.inference.generation import GenerationConfig, generate
from sonant.layers.vocabulary_loss import target_log_probs
from sonant.models.causal import max_positions
from sonant.text.coding import Tokenizer
from sonant.text.tokenizer import load_tokenizer

_MOST_TOKENS = 8192  # of a batch, padding included


@dataclass(frozen=True)
class Score:
    """Of one text."""

    log_prob: float  # nats, the sum over its tokens
    num_tokens: int  # scored; the end of the text is one, where it is asked for

    @property
    def mean(self) -> float:
        """By token: what texts of different length are compared by."""
        return self.log_prob / self.num_tokens if self.num_tokens else 0.0


@dataclass(frozen=True)
class Scorer:
    model: nn.Module
    tokenizer: Tokenizer

    @classmethod
    def open(cls, folder: str, device: str = "cpu") -> Scorer:
        """The language model of a bundle."""
        bundle = open_bundle(folder)
        bundle.require_task("language")
        return cls(bundle.model().to(device), load_tokenizer(folder))

    def score(self, texts: Sequence[str], *, context: str = "", with_end: bool = True) -> list[Score]:
        """log p of each text behind the context, and that it ends there, where texts end with a symbol."""
        rows = [self._row(text, context, with_end=with_end) for text in texts]
        windows = [window for number, row in enumerate(rows) for window in self._windows(number, row)]
        windows.sort(key=lambda window: -len(window.tokens))
        sums = np.zeros(len(texts))
        counts = np.zeros(len(texts), np.int64)
        while windows:
            batch, windows = _cut(windows)
            found = self._log_probs(batch)
            for window, total in zip(batch, found, strict=True):
                sums[window.row] += total
                counts[window.row] += window.num_scored
        return [Score(float(total), int(count)) for total, count in zip(sums, counts, strict=True)]

    def generate(self, prompt: str = "", config: GenerationConfig | None = None, *, count: int = 1) -> list[str]:
        """Texts that follow the prompt, each drawn by itself."""
        return [generate(self.model, self.tokenizer, prompt, config, number=number) for number in range(count)]

    def _row(self, text: str, context: str, *, with_end: bool) -> tuple[list[int], int]:
        """All tokens, and how many of them stand before what is scored."""
        tokenizer = self.tokenizer
        start = tokenizer.bos_id if tokenizer.bos_id is not None else tokenizer.eos_id
        before = [*([] if start is None else [start]), *(tokenizer.encode(context) if context else [])]
        end = [tokenizer.eos_id] if with_end and tokenizer.eos_id is not None else []
        return [*before, *tokenizer.encode(text), *end], max(len(before), 1)

    def _windows(self, number: int, row: tuple[list[int], int]) -> list[_Window]:
        """A text that the model cannot see at once comes in windows; each but the first has half of it for context."""
        tokens, first = row
        limit = (max_positions(self.model) or len(tokens)) + 1
        found = []
        while first < len(tokens):
            start = 0 if len(tokens) <= limit or first < limit // 2 else first - limit // 2
            end = min(start + limit, len(tokens))
            found.append(_Window(number, tokens[start:end], end - first))
            first = end
        return found

    @torch.no_grad()
    def _log_probs(self, batch: Sequence[_Window]) -> list[float]:
        device = next(self.model.parameters()).device
        longest = max(len(window.tokens) for window in batch) - 1
        tokens = torch.zeros(len(batch), longest, dtype=torch.int64)
        targets = torch.full_like(tokens, NO_TOKEN)
        for row, window in enumerate(batch):
            ids = torch.tensor(window.tokens)
            tokens[row, : len(ids) - 1] = ids[:-1]
            targets[row, len(ids) - 1 - window.num_scored : len(ids) - 1] = ids[-window.num_scored :]
        targets = targets.to(device)
        is_scored = targets != NO_TOKEN

        def answer(hidden: Tensor, head: nn.Linear) -> Tensor:
            return target_log_probs(hidden[is_scored], head.weight, head.bias, targets[is_scored])[0]

        found = self.model(tokens.to(device), answer=answer)
        places = torch.zeros(targets.shape, dtype=torch.float64, device=device)
        sums: list[float] = places.masked_scatter(is_scored, found.double()).sum(1).tolist()
        return sums


@dataclass(frozen=True)
class _Window:
    """Some tokens of a text, the last `num_scored` of which are scored."""

    row: int
    tokens: list[int]
    num_scored: int


def _cut(windows: list[_Window]) -> tuple[list[_Window], list[_Window]]:
    """As many of the first as a batch may hold, and the rest; the first is the longest."""
    count = max(_MOST_TOKENS // len(windows[0].tokens), 1)
    return windows[:count], windows[count:]
