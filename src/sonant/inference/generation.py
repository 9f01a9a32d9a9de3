"""Text from a causal language model: one token after the other, drawn or the likeliest, the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from sonant.base.bounds import Within, check_fields
from sonant.base.randomness import stable_hash
from sonant.models.causal import max_positions
from sonant.text.coding import Tokenizer


@dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    max_tokens: Annotated[int, Within(1, 1e6)] = 200  # of new text, unless its end is drawn before
    temperature: Annotated[float, Within(0, 100)] = 0.8  # 0: always the likeliest
    top_k: Annotated[int, Within(0, 1e9)] = 200  # only so many of the likeliest; 0: all
    top_p: Annotated[float, Within(0.0001, 1)] = 1.0  # only the likeliest that have this probability together
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)


@torch.no_grad()
def generate(
    model: nn.Module, tokenizer: Tokenizer, prompt: str = "", config: GenerationConfig | None = None, *, number: int = 0
) -> str:
    """What follows the prompt, without it; `number` tells several texts of one seed apart.

    The model keeps what it has seen; when its positions are used up it goes on from the later half of them.
    """
    config = config or GenerationConfig()
    device = next(model.parameters()).device
    draw = torch.Generator().manual_seed(stable_hash(config.seed, number, prompt) >> 1)
    seen = _beginning(tokenizer, prompt)
    first_new, limit = len(seen), max_positions(model)
    was_training = model.training
    model.eval()
    memory, unread = None, seen[-(limit or 0) :]
    for _ in range(config.max_tokens):
        if limit and memory is not None and memory.get_seq_length() >= limit:
            memory, unread = None, seen[-max(limit // 2, 1) :]
        found: Any = model(input_ids=torch.tensor([unread], device=device), past_key_values=memory, use_cache=True)
        memory = found.past_key_values
        token = _chosen(found.logits[0, -1].float().cpu()[: tokenizer.size], config, draw)
        if token == tokenizer.eos_id:
            break
        seen.append(token)
        unread = [token]
    model.train(was_training)
    return tokenizer.decode(seen[first_new:])


def _beginning(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """What a text begins behind: the end of another, as in training; without such a symbol, something must be given."""
    start = tokenizer.bos_id if tokenizer.bos_id is not None else tokenizer.eos_id
    ids = tokenizer.encode(prompt)
    if start is not None:
        return [start, *ids]
    return ids or tokenizer.encode("\n") or [0]


def _chosen(logits: Tensor, config: GenerationConfig, draw: torch.Generator) -> int:
    """The next token from logits (V,)."""
    if not config.temperature:
        return int(logits.argmax())
    logits = logits / config.temperature
    if 0 < config.top_k < len(logits):
        logits = logits.where(logits >= logits.topk(config.top_k).values[-1], -torch.inf)
    probabilities = logits.softmax(0)
    if config.top_p < 1:
        ordered, order = probabilities.sort(descending=True, stable=True)
        is_beyond = ordered.cumsum(0) - ordered >= config.top_p
        probabilities = probabilities.scatter(0, order[is_beyond], 0.0)
    return int(torch.multinomial(probabilities, 1, generator=draw))
