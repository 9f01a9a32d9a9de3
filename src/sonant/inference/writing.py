"""Text from a recogniser that writes, token by token: the likeliest next one, or a search with a beam.

An utterance has the same text whatever stands beside it. None goes on for ever: of so many seconds come so many tokens
at most, and what repeats itself again and again is written once.

Shapes: A utterances at work, K texts of each, B = A·K rows, V symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from torch import Tensor

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.models.writer import limits_of
from sonant.text.prompts import Prompt

_LONGEST_LOOP = 10  # tokens
_FREE_TOKENS = 10  # that any utterance may have, however short


@dataclass(frozen=True, kw_only=True)
class WritingConfig:
    beam: Annotated[int, Within(1, 100)] = 1  # texts that are gone on with; 1: always the likeliest token
    length_weight: Annotated[float, Within(0, 10)] = 1.0  # scores are divided by so-many-th power of their tokens
    most_repeats: Annotated[int, Within(0, 1000)] = 8  # of a few tokens: then once is enough, and it ends; 0: any
    tokens_per_second: Annotated[float, Within(0, 1000)] = 0.0  # at most; 0: half as many again as any text learnt

    def __post_init__(self) -> None:
        check_fields(self)
        if self.most_repeats == 1:
            problem = "whatever is written once would be too much."
            raise ConfigError("most_repeats", problem, "Give 2 or more; or 0, for any number of repeats.")


@dataclass(frozen=True)
class Written:
    """One text, without prompt and end."""

    ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()  # of each token
    end_log_prob: float = 0.0
    is_whole: bool = False  # it ended by itself, and not because it was too long

    @property
    def log_prob(self) -> float:
        return sum(self.log_probs) + self.end_log_prob

    def score(self, length_weight: float) -> float:
        return self.log_prob / float(max(len(self.ids) + self.is_whole, 1) ** length_weight)


@torch.no_grad()
def write(
    model: Any, encoded: Tensor, lengths: Lengths, seconds: Sequence[float], prompt: Prompt, config: WritingConfig
) -> list[list[Written]]:
    """The texts of each utterance, best first: as many as the beam is wide, where there are so many."""
    room = limits_of(model).most_tokens - len(prompt.ids) - 1
    per_second = config.tokens_per_second or math.inf
    most = [int(min(room, per_second * duration + _FREE_TOKENS)) for duration in seconds]
    assert room >= 1, "a prompt leaves room for a text"
    search = _Search(config, prompt, most)
    tokens, memory = torch.tensor([prompt.ids] * len(most), device=encoded.device), None
    while search.at_work:
        hidden, memory = model.write(tokens, encoded, lengths, memory, remembers=True)
        logits = model.proj_out(hidden[:, -1]).float()  # (B, V)
        rows, following = search.advance(_allowed(logits, prompt, is_first=search.num_tokens == 0).log_softmax(dim=-1))
        if rows != list(range(len(tokens))):
            chosen = torch.tensor(rows, dtype=torch.int64, device=encoded.device)
            memory.batch_select_indices(chosen)
            encoded, lengths = encoded.index_select(0, chosen), Lengths(lengths.values.index_select(0, chosen))
        tokens = torch.tensor(following, dtype=torch.int64, device=encoded.device)[:, None]
    return search.found()


class _Search:
    """Which texts are gone on with: of each utterance at work as many as the beam is wide."""

    def __init__(self, config: WritingConfig, prompt: Prompt, most: Sequence[int]) -> None:
        self.config, self.end, self.most = config, prompt.end, most
        self.num_tokens = 0
        self.at_work = {number: [Written()] for number in range(len(most))}
        self.done: list[list[Written]] = [[] for _ in most]

    def advance(self, log_probs: Tensor) -> tuple[list[int], list[int]]:
        """From log-probabilities (B, V) of the next token: the rows that are gone on with, and their tokens."""
        self.num_tokens += 1
        rows: list[int] = []
        first, at_work = 0, {}
        for number, texts in self.at_work.items():
            going_on = self._following(number, texts, log_probs[first : first + len(texts)])
            rows += [first + place for place, _ in going_on]
            if going_on:
                at_work[number] = [text for _, text in going_on]
            first += len(texts)
        self.at_work = at_work
        return rows, [text.ids[-1] for texts in at_work.values() for text in texts]

    def _following(self, number: int, texts: list[Written], log_probs: Tensor) -> list[tuple[int, Written]]:
        """The texts that go on, each with the place of the one it came from in (K, V); those that end are done."""
        beam, width, done = self.config.beam, log_probs.shape[1], self.done[number]
        totals = log_probs + log_probs.new_tensor([text.log_prob for text in texts])[:, None]
        best = totals.flatten().topk(min(2 * beam, totals.numel())).indices
        going_on: list[tuple[int, Written]] = []
        pairs = zip(best.tolist(), log_probs.flatten()[best].tolist(), strict=True)
        for rank, (index, log_prob) in enumerate(pairs):
            place, token = divmod(index, width)
            text = texts[place]
            if token == self.end:
                done += [replace(text, end_log_prob=log_prob, is_whole=True)] if rank < beam else []
            elif len(going_on) < beam and log_prob > -math.inf:
                longer = Written((*text.ids, token), (*text.log_probs, log_prob))
                unlooped = _without_loop(longer, self.config.most_repeats)
                if unlooped is longer:
                    going_on.append((place, longer))
                else:
                    done.append(unlooped)
        if self.num_tokens == self.most[number] and len(done) < beam:
            done += [text for _, text in going_on]
        return going_on if self.num_tokens < self.most[number] and len(done) < beam else []

    def found(self) -> list[list[Written]]:
        weight = self.config.length_weight
        return [sorted(texts, key=lambda one: -one.score(weight))[: self.config.beam] for texts in self.done]


def _without_loop(text: Written, most_repeats: int) -> Written:
    """The same text, but for one whose end is a stretch so often behind itself: that stretch once."""
    for size in range(1, _LONGEST_LOOP + 1) if most_repeats else ():
        end = text.ids[-size * most_repeats :]
        if len(end) == size * most_repeats and end == end[:size] * most_repeats:
            kept = len(text.ids) - size * (most_repeats - 1)
            return Written(text.ids[:kept], text.log_probs[:kept])
    return text


def _allowed(logits: Tensor, prompt: Prompt, *, is_first: bool) -> Tensor:
    """Without what may not be written."""
    never = [*prompt.never, *(prompt.never_first if is_first else ())]
    return logits.index_fill(1, torch.tensor(never, device=logits.device), -math.inf) if never else logits
