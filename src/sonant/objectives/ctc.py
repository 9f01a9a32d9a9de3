"""Connectionist temporal classification: the texts, summed over all ways to spread their symbols over the frames.

Reference: Graves et al. (2006). By option with consistency (CR-CTC, Yao et al., "CR-CTC: Consistency regularization on
CTC for improved speech recognition", 2024): each utterance is seen twice with other parts hidden, and both views are
drawn to each other, frame by frame.

Shapes: B utterances, T frames of the scores, V symbols, L tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.batches.batch import SpeechBatch
from sonant.models.recognizer import Heard, Hidden, Scores
from sonant.objectives.hiding import HidingConfig, hidden_in, known_before, let_learn
from sonant.objectives.loss import Loss, Mean, Part, Watch


@dataclass(frozen=True, kw_only=True)
class CtcConfig:
    hiding: HidingConfig = field(default_factory=HidingConfig)
    consistency: Annotated[float, Within(0, 100)] = 0.0  # what two views count beside the texts; 0: one view

    def __post_init__(self) -> None:
        check_fields(self)
        if self.consistency and not self.hiding:
            problem = "two views of an utterance are the same while nothing is hidden."
            raise ConfigError("consistency", problem, "Set hiding.frames or hiding.bands, or leave it out.")


class Ctc:
    """The sum of -log p over utterances, counted in tokens; the end of each counts too, so that silence has weight.

    An utterance with fewer frames than its text needs has no probability: it is left out of sums and counts.
    """

    def __init__(
        self,
        config: CtcConfig,
        num_frames: Callable[[Any], Any],
        blank_id: int,
        *,
        seed: int = 0,
        begins: Mapping[str, int] | None = None,
    ) -> None:
        """`begins` names parameters, and the step from which on they learn."""
        self.config, self.num_frames, self.blank_id, self.seed = config, num_frames, blank_id, seed
        self.begins = dict(begins or {})
        self.watches = _WATCHES

    def counts(self, batch: SpeechBatch) -> Mapping[str, float]:
        is_possible, lengths = self._possible(batch)
        return {"tokens": float(((lengths + 1) * is_possible).sum())}

    def __call__(self, model: nn.Module, batch: SpeechBatch, step: int) -> Loss:
        if model.training:
            let_learn(model, self.begins, step)
        num_views = 2 if model.training and self.config.consistency else 1

        def between(heard: Heard) -> tuple[Heard, Hidden | None]:
            hidden = hidden_in(step, model, self.config.hiding, batch, heard, self.seed, num_views)
            return _repeated(heard, num_views), hidden

        known = known_before(batch, self.num_frames)
        scores: Scores = model(batch.waveforms, batch.lengths, between, known)
        with torch.autocast(batch.waveforms.device.type, enabled=False):
            return self._loss(scores, batch, num_views)

    def _loss(self, scores: Scores, batch: SpeechBatch, num_views: int) -> Loss:
        assert batch.tokens is not None
        is_possible, token_lengths = self._possible(batch)
        log_probs = scores.log_probs  # (B, T, V), of each view B
        losses = self.losses(log_probs, scores.lengths, batch.tokens, token_lengths, is_possible)
        parts = {"ctc": Part(total=losses.sum() / num_views, count="tokens")}
        is_real = scores.lengths.mask(log_probs.shape[1])
        if num_views == 2:
            is_told = is_real & is_possible.repeat(2)[:, None]
            parts["consistency"] = Part(
                total=_apart(log_probs, is_told) / 2, count="tokens", weight=self.config.consistency
            )
        is_blank = (scores.logits.detach().argmax(dim=-1) == self.blank_id) & is_real
        health = {"blank_share": Mean(is_blank.sum(), is_real.sum())}
        return Loss(parts=parts, health=health | {"left_out": Mean((~is_possible).sum(), float(len(batch)))})

    def losses_of(self, log_probs: Tensor, lengths: Lengths, batch: SpeechBatch) -> tuple[Tensor, Tensor]:
        """(B,) -log p of each text of a batch and what it is counted by; 0 and 0 where it is impossible."""
        assert batch.tokens is not None
        is_possible, token_lengths = self._possible(batch)
        losses = self.losses(log_probs, lengths, batch.tokens, token_lengths, is_possible)
        return losses, (token_lengths + 1) * is_possible

    def losses(
        self, log_probs: Tensor, lengths: Lengths, tokens: Tensor, token_lengths: Tensor, is_possible: Tensor
    ) -> Tensor:
        """(B,) -log p of each text, 0 for impossible ones; of several views one behind the other."""
        num_views = len(log_probs) // max(len(tokens), 1)
        if not log_probs.numel():
            return log_probs.sum(dim=(1, 2))
        # An impossible text is taken for an empty one, and its loss for nothing: no infinity enters a gradient.
        is_possible = is_possible.repeat(num_views)
        targets = tokens.clamp(min=0).repeat(num_views, 1)
        losses = F.ctc_loss(
            log_probs.transpose(0, 1),
            targets,
            lengths.values.clamp(min=1),
            (token_lengths.repeat(num_views) * is_possible),
            blank=self.blank_id,
            reduction="none",
        )
        return losses * is_possible

    def _possible(self, batch: SpeechBatch) -> tuple[Tensor, Tensor]:
        """(B,) whether there are frames enough for the text, and the tokens of each."""
        assert batch.tokens is not None
        assert batch.token_lengths is not None
        is_token = batch.token_lengths.mask(batch.tokens.shape[1])[:, 1:]
        repeats = ((batch.tokens[:, 1:] == batch.tokens[:, :-1]) & is_token).sum(dim=1)
        lengths: Tensor = batch.token_lengths.values
        needed = (lengths + repeats).clamp(min=1)
        return self.num_frames(batch.lengths.values) >= needed, lengths


def _repeated(heard: Heard, count: int) -> Heard:
    """One behind the other, so often."""
    if count == 1:
        return heard
    scored = None if heard.scored is None else Lengths(heard.scored.values.repeat(count))
    return Heard(heard.frames.repeat(count, 1, 1), Lengths(heard.lengths.values.repeat(count)), scored)


def _apart(log_probs: Tensor, is_told: Tensor) -> Tensor:
    """How far two views (2·B, T, V) are apart, each from the other as it stands, over frames that are told."""
    first, second = log_probs.chunk(2)
    other = torch.cat([second, first]).detach()
    divergence = F.kl_div(log_probs, other, reduction="none", log_target=True).sum(dim=-1)  # (2·B, T)
    return divergence.masked_fill(~is_told, 0).sum()


_WATCHES = (
    Watch(
        figure="blank_share",
        above=0.99,
        for_steps=500,
        after_step=1500,
        says="nearly every frame is still blank: the model writes nothing.",
        action="Raise optimizer.rate, lengthen the warmup, or check that texts belong to their recordings.",
    ),
    Watch(
        figure="left_out",
        above=0.1,
        for_steps=200,
        says="more than a tenth of the utterances have fewer frames than their texts need.",
        action="Look at speed augmentation and at the texts; or use a tokenizer with longer symbols.",
    ),
)
