"""The next token of a text, behind what is heard of it: what a recogniser learns that writes.

The prompt in front of a text is given, and not learnt; the end behind it is.

Shapes: B utterances, L tokens of prompt and text, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.base.bounds import Within, check_fields
from sonant.base.lengths import Lengths
from sonant.batches.batch import NO_TOKEN, SpeechBatch
from sonant.layers.vocabulary_loss import target_log_probs, vocabulary_loss
from sonant.models.recognizer import Heard, Hidden
from sonant.objectives.hiding import HidingConfig, hidden_in, known_before, let_learn
from sonant.objectives.loss import Loss, Mean, Part, comes_apart
from sonant.text.prompts import Prompt


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
    hiding: HidingConfig = field(default_factory=HidingConfig)
    smoothing: Annotated[float, Within(0, 0.9)] = 0.0  # share of the loss that wants all symbols alike

    def __post_init__(self) -> None:
        check_fields(self)


class Seq2Seq:
    """The sum of -log p over the tokens of texts and their ends; counted in these."""

    watches = (comes_apart(1 << 16),)

    def __init__(
        self,
        config: Seq2SeqConfig,
        num_frames: Callable[[Any], Any],
        prompt: Prompt,
        *,
        seed: int = 0,
        begins: Mapping[str, int] | None = None,
    ) -> None:
        """`begins` names parameters, and the step from which on they learn."""
        self.config, self.num_frames, self.prompt = config, num_frames, prompt
        self.seed, self.begins = seed, dict(begins or {})

    def counts(self, batch: SpeechBatch) -> Mapping[str, float]:
        assert batch.token_lengths is not None
        return {"tokens": float(batch.token_lengths.total + len(batch))}

    def __call__(self, model: nn.Module, batch: SpeechBatch, step: int) -> Loss:
        if model.training:
            let_learn(model, self.begins, step)
        tokens, targets = self.rows(batch)
        smoothing = self.config.smoothing if model.training else 0.0

        def between(heard: Heard) -> tuple[Heard, Hidden | None]:
            return heard, hidden_in(step, model, self.config.hiding, batch, heard, self.seed)

        def answer(hidden: Tensor, head: nn.Linear) -> tuple[Tensor, Tensor]:
            return vocabulary_loss(hidden.flatten(0, 1), head.weight, head.bias, targets.flatten(), smoothing)

        known = known_before(batch, self.num_frames)
        total, num_correct = model(batch.waveforms, batch.lengths, tokens, answer, between, known)
        count = (targets != NO_TOKEN).sum()
        return Loss(parts={"seq2seq": Part(total=total, count="tokens")}, health={"accuracy": Mean(num_correct, count)})

    def rows(self, batch: SpeechBatch) -> tuple[Tensor, Tensor]:
        """Twice (B, L): the tokens that are read, and the one behind each; NO_TOKEN where none is learnt."""
        assert batch.tokens is not None
        assert batch.token_lengths is not None
        before = batch.tokens.new_tensor(self.prompt.ids).expand(len(batch), -1)
        tokens = torch.cat([before, batch.tokens.clamp(min=0)], dim=1)
        targets = F.pad(batch.tokens, (len(self.prompt.ids) - 1, 1), value=NO_TOKEN)
        ends = len(self.prompt.ids) - 1 + batch.token_lengths.values[:, None]
        return tokens, targets.scatter(1, ends, self.prompt.end)

    def losses_of(self, model: Any, encoded: Tensor, lengths: Lengths, batch: SpeechBatch) -> tuple[Tensor, Tensor]:
        """(B,) -log p of each text of a batch that was encoded, and what it is counted by."""
        assert batch.token_lengths is not None
        tokens, targets = self.rows(batch)
        is_target = targets != NO_TOKEN
        hidden, _ = model.write(tokens, encoded, lengths)
        head = model.proj_out
        log_probs, _ = target_log_probs(hidden[is_target], head.weight, head.bias, targets[is_target])
        places = torch.zeros(targets.shape, dtype=torch.float32, device=targets.device)
        return -places.masked_scatter(is_target, log_probs).sum(dim=1), batch.token_lengths.values + 1
