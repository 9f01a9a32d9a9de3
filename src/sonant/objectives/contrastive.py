"""The objective of wav2vec 2.0: of many targets each hidden frame's context must tell its own, and all codes be used.

Reference: Baevski et al. (2020), equations 2 to 4, with the arithmetic of Hugging Face's `Wav2Vec2ForPreTraining`.
Only hidden frames are looked at. The similarities of a group of frames, an utterance or a whole batch, are one matrix
product; a frame drawn n times as a negative counts n times in the sum, so that nothing is gathered, forward or
backward.

Shapes: M hidden frames of a batch, R groups, m hidden frames of the largest group, K negatives, P compared width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.batches.pretraining import PretrainingBatch
from sonant.layers.layer_drop import draw_of
from sonant.models.wav2vec2_pretraining import Compared
from sonant.objectives.loss import Loss, Mean, Part, Watch


@dataclass(frozen=True, kw_only=True)
class ContrastiveConfig:
    similarity_temperature: Annotated[float, Within(1e-4, 100)] = 0.1  # by which similarities are divided
    diversity_weight: Annotated[float, Within(0, 1e6)] = 0.1
    warmest: Annotated[float, Within(1e-3, 100)] = 2.0  # temperature of the choice of codes, at the first step
    coldest: Annotated[float, Within(1e-3, 100)] = 0.5
    cooling: Annotated[float, Within(0.5, 1)] = 0.999995  # the temperature is multiplied by this after each step

    def __post_init__(self) -> None:
        check_fields(self)
        if self.coldest > self.warmest:
            problem = f"{self.coldest:g} is more than warmest ({self.warmest:g})."
            raise ConfigError("coldest", problem, "Lower it.")

    def temperature(self, step: int) -> float:
        """Of the choice of codes, after so many updates."""
        return max(self.warmest * self.cooling**step, self.coldest)


class Contrastive:
    """Maps a `Wav2Vec2Pretraining` and a batch to two parts, both over hidden frames.

    The diversity is that of a micro-batch's mean choice: it depends on which utterances share one. So does the
    contrastive part where negatives come from other utterances.
    """

    def __init__(self, config: ContrastiveConfig = ContrastiveConfig(), *, seed: int = 0) -> None:
        self.config, self.seed = config, seed
        self.watches = _WATCHES

    def counts(self, batch: PretrainingBatch) -> Mapping[str, float]:
        return {"hidden_frames": float(sum(batch.num_hidden))}

    def __call__(self, model: nn.Module, batch: PretrainingBatch, step: int) -> Loss:
        temperature = self.config.temperature(step)
        compared: Compared = model(
            batch.speech.waveforms,
            batch.speech.lengths,
            batch.hidden,
            batch.places,
            temperature=temperature,
            draw=draw_of(self.seed, step),
        )
        device = compared.contexts.device.type
        with torch.autocast(device, enabled=False):
            groups = _Groups.of(batch)
            told = _told_apart(compared, batch.negatives, groups, self.config.similarity_temperature)
            num_hidden = len(batch.places)
            unused = (compared.num_entries - compared.perplexity) / compared.num_entries
            diversity = Part(
                total=unused * num_hidden,
                count="hidden_frames",
                weight=self.config.diversity_weight,
                over="micro_batch",
            )
        contrastive = Part(
            total=told.losses.sum(),
            count="hidden_frames",
            over="examples" if batch.reach == "utterance" else "micro_batch",
        )
        return Loss(
            parts={"contrastive": contrastive, "diversity": diversity},
            health=_health(compared, told, batch) | {"code_temperature": Mean(temperature)},
            single={
                "contrastive": Mean(told.losses.detach()),
                "accuracy": Mean(told.is_right),
                "negatives_alike": Mean(told.num_alike, batch.negatives.shape[1]),
            },
        )


@dataclass(frozen=True)
class _Groups:
    """Hidden frames that are compared with each other."""

    members: Tensor  # (R, m) which of the M frames; padding repeats the first
    firsts: Tensor  # (M, 1) where the group of each frame begins among the M
    cells: Tensor  # (M,) where each frame stands among the R·m

    @classmethod
    def of(cls, batch: PretrainingBatch) -> _Groups:
        total = len(batch.places)
        sizes = [size for size in batch.num_hidden if size] if batch.reach == "utterance" else [total]
        counts = torch.tensor(sizes, dtype=torch.int64)
        firsts = counts.cumsum(0) - counts  # (R,)
        largest = max(sizes, default=0)
        within = torch.arange(largest)  # (m,)
        is_member = within[None, :] < counts[:, None]  # (R, m)
        members = torch.where(is_member, firsts[:, None] + within, 0)
        cells = is_member.flatten().nonzero().flatten()
        device = batch.places.device
        repeated = firsts.repeat_interleave(counts)[:, None]
        return cls(members.to(device), repeated.to(device), cells.to(device))

    def spread(self, x: Tensor) -> Tensor:
        """Maps (M, …) to (R, m, …)."""
        return x.index_select(0, self.members.flatten()).view(*self.members.shape, *x.shape[1:])

    def rows(self, x: Tensor) -> Tensor:
        """Maps (R, m, …) back to (M, …)."""
        return x.flatten(0, 1).index_select(0, self.cells)


@dataclass(frozen=True)
class _Told:
    losses: Tensor  # (M,)
    is_right: Tensor  # (M,): the own target was the most similar
    num_alike: Tensor  # (M,): negatives that equal the target, and so are none


def _told_apart(compared: Compared, negatives: Tensor, groups: _Groups, temperature: float) -> _Told:
    if not len(negatives):
        nothing = (compared.contexts + compared.targets).float().sum(dim=1)  # (0,), with its gradients
        return _Told(nothing, nothing.detach(), nothing.detach())
    contexts = F.normalize(compared.contexts.float(), dim=1, eps=1e-8)  # (M, P)
    targets = F.normalize(compared.targets.float(), dim=1, eps=1e-8)
    positive = (contexts * targets).sum(dim=1) / temperature  # (M,)
    similarities = groups.spread(contexts) @ groups.spread(targets).transpose(1, 2)  # (R, m, m)
    logits = groups.rows(similarities) / temperature  # (M, m)
    times = _times_drawn(negatives - groups.firsts, logits.shape[1])  # (M, m)
    is_alike = _alike(compared.codes, groups)
    num_alike = (times * is_alike).sum(dim=1)  # (M,)
    times = times.masked_fill(is_alike, 0)
    # The own target is drawn once, each negative as often as it was: Σ n exp(x) = Σ exp(x + log n).
    own = torch.arange(len(logits), device=logits.device)[:, None] - groups.firsts  # (M, 1)
    losses = (logits + times.scatter(1, own, 1).log()).logsumexp(dim=1) - positive  # (M,)
    hardest = logits.detach().masked_fill(times == 0, -torch.inf).amax(dim=1)  # (M,)
    is_right = (positive.detach() > hardest) & hardest.isfinite()
    return _Told(losses, is_right, num_alike)


def _times_drawn(negatives: Tensor, num_columns: int) -> Tensor:
    """(M, m): how often each frame of the group is a negative of each frame."""
    times = torch.zeros(len(negatives), num_columns, device=negatives.device)
    return times.scatter_add_(1, negatives, torch.ones_like(negatives, dtype=times.dtype))


def _alike(codes: Tensor, groups: _Groups) -> Tensor:
    """(M, m): where another frame of the group, or the frame itself, has the same codes."""
    spread = groups.spread(codes)  # (R, m, G)
    same = torch.ones(1, dtype=torch.bool, device=codes.device)
    for group in range(codes.shape[1]):
        of_group = spread[:, :, group]
        same = same & (of_group[:, :, None] == of_group[:, None, :])
    return groups.rows(same)


@torch.no_grad()
def _health(compared: Compared, told: _Told, batch: PretrainingBatch) -> dict[str, Mean]:
    num_hidden = len(batch.places)
    used = torch.zeros(compared.num_entries, device=compared.codes.device)
    num_groups = compared.codes.shape[1]
    offsets = torch.arange(num_groups, device=used.device) * (compared.num_entries // num_groups)
    used.index_fill_(0, (compared.codes + offsets).flatten(), 1.0)
    return {
        "code_perplexity": Mean(compared.perplexity * num_hidden, num_hidden),
        "perplexity_share": Mean(compared.perplexity * num_hidden / compared.num_entries, num_hidden),
        "codes_used": Mean(used.sum() / compared.num_entries * num_hidden, num_hidden),
        "mask_share": Mean(num_hidden, batch.frame_lengths.values.sum()),
        "accuracy": Mean(told.is_right.sum(), num_hidden),
        "negatives_alike": Mean(told.num_alike.sum(), batch.negatives.numel()),
    }


_ACTION = "Lower optimizer.rate, raise objective.diversity_weight, or go back: guard.on_failure=rollback."
_WATCHES = (
    Watch(
        figure="negatives_alike",
        above=0.5,
        after_step=100,
        is_fatal=True,
        says="the codebook has collapsed: most negatives have the very codes of the target they are told from.",
        action=_ACTION,
    ),
    Watch(
        figure="perplexity_share",
        below=0.01,
        after_step=100,
        is_fatal=True,
        says="the codebook has collapsed: less than one code in a hundred is in use.",
        action=_ACTION,
    ),
)
