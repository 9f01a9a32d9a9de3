"""wav2vec 2.0 while it learns from speech alone: a context for each hidden frame, and a target to be told by it.

Shapes: B utterances, N samples, T frames, M hidden frames of all utterances, D width, E width of what was heard,
P width that contexts and targets are compared in, G groups of the codebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from torch import Tensor, nn

from sonant.base import config as configs
from sonant.base.bounds import Within, check_fields
from sonant.base.lengths import Lengths
from sonant.layers.dropout import Dropout
from sonant.layers.quantizers import ProductQuantizer, ProductQuantizerConfig
from sonant.models.wav2vec2 import Size, Wav2Vec2, Wav2Vec2Config, size


@dataclass(frozen=True, kw_only=True)
class Wav2Vec2PretrainingConfig:
    encoder: Wav2Vec2Config = field(default_factory=lambda: size("base"))
    quantizer: ProductQuantizerConfig = field(default_factory=ProductQuantizerConfig)
    compared_width: Annotated[int, Within(1, 65536)] = 256

    def __post_init__(self) -> None:
        check_fields(self)


def pretraining_size(name: Size) -> Wav2Vec2PretrainingConfig:
    """The sizes of the paper, and one that learns on a laptop."""
    if name == "large":
        quantizer = ProductQuantizerConfig(width=768)
        return Wav2Vec2PretrainingConfig(encoder=size("large"), quantizer=quantizer, compared_width=768)
    if name == "tiny":
        quantizer = ProductQuantizerConfig(num_entries=64, width=128)
        return Wav2Vec2PretrainingConfig(encoder=size("tiny"), quantizer=quantizer, compared_width=128)
    return Wav2Vec2PretrainingConfig()


@dataclass(frozen=True)
class Compared:
    """What the contrastive objective compares."""

    contexts: Tensor  # (M, P)
    targets: Tensor  # (M, P)
    codes: Tensor  # (M, G)
    perplexity: Tensor  # scalar, of the codebook
    num_entries: int  # of all groups of the codebook together


class Wav2Vec2Pretraining(nn.Module):
    def __init__(self, config: Wav2Vec2PretrainingConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Wav2Vec2(config.encoder)
        self.quantizer_dropout = Dropout(config.quantizer.dropout)
        self.quantizer = ProductQuantizer(self.encoder.heard_width, config.quantizer)
        self.project_context = nn.Linear(self.encoder.width, config.compared_width)
        self.project_target = nn.Linear(config.quantizer.width, config.compared_width)

    def gradient_checkpointing_enable(self) -> None:
        self.encoder.gradient_checkpointing_enable()

    def forward(
        self,
        waveforms: Tensor,
        lengths: Lengths,
        hidden: Tensor,
        places: Tensor,
        *,
        temperature: float,
        draw: int | None = None,
    ) -> Compared:
        """Maps (B, N); `hidden` (B, T) marks the frames that are hidden, `places` (M,) are those among the B·T."""
        encoded = self.encoder(waveforms, lengths, hidden=hidden, draw=draw)
        contexts = encoded.frames.flatten(0, 1).index_select(0, places)  # (M, D)
        heard = encoded.heard.flatten(0, 1).index_select(0, places)  # (M, E)
        quantized = self.quantizer(self.quantizer_dropout(heard), temperature)
        return Compared(
            contexts=self.project_context(contexts),
            targets=self.project_target(quantized.vectors),
            codes=quantized.codes,
            perplexity=quantized.perplexity,
            num_entries=self.config.quantizer.num_groups * self.config.quantizer.num_entries,
        )


def build(config: Mapping[str, Any]) -> Wav2Vec2Pretraining:
    """What a bundle's config describes."""
    return Wav2Vec2Pretraining(configs.from_dict(Wav2Vec2PretrainingConfig, dict(config), "bundle.json"))
