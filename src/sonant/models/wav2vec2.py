"""wav2vec 2.0: convolutions hear frames of 20 ms in the waveform, a transformer tells them by what is around them.

Reference: Baevski et al., "wav2vec 2.0: A Framework for Self-Supervised Learning of Speech Representations" (2020).
As Hugging Face has it, but that padding never changes an answer, in either norm of the convolutions.

Shapes: B utterances, N samples, T frames, E width of the convolutions, D width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from sonant.audio.features.utterance import normalized
from sonant.base import config as configs
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.base.lengths import Count, Lengths
from sonant.layers.attention import may_see
from sonant.layers.dropout import Dropout
from sonant.layers.gradients import scaled_gradient
from sonant.layers.linear import Linear
from sonant.layers.positional_convolution import PositionalConvolution
from sonant.layers.transformer import Transformer, TransformerConfig
from sonant.layers.waveform_convolutions import ConvolutionsConfig, WaveformConvolutions
from sonant.models.encoder import Encoded

Size = Literal["tiny", "base", "large"]


@dataclass(frozen=True, kw_only=True)
class Wav2Vec2Config:
    convolutions: ConvolutionsConfig = field(default_factory=ConvolutionsConfig)
    transformer: TransformerConfig = field(default_factory=TransformerConfig)
    normalize: bool = True  # each waveform to mean 0 and variance 1, as `do_normalize` of a checkpoint says
    projection_dropout: Annotated[float, Within(0, 0.99)] = 0.0
    position_kernel: Annotated[int, Within(1, 65536)] = 128  # frames
    position_groups: Annotated[int, Within(1, 65536)] = 16
    convolution_gradient: Annotated[float, Within(0, 1e6)] = 1.0  # times the gradient of the convolutions

    def __post_init__(self) -> None:
        check_fields(self)
        if self.transformer.width % self.position_groups:
            problem = f"{self.position_groups} groups cannot share a width of {self.transformer.width} evenly."
            raise ConfigError("position_groups", problem, "Choose a divisor of the width.")


def size(name: Size) -> Wav2Vec2Config:
    """The sizes of the paper, and one that learns on a laptop."""
    if name == "tiny":
        return Wav2Vec2Config(
            convolutions=ConvolutionsConfig(widths=(128,) * 7),
            transformer=TransformerConfig(
                width=192, hidden_width=768, num_layers=4, num_heads=4, norm_first=True, layer_drop=0.0
            ),
            position_kernel=64,
        )
    if name == "base":
        convolutions = ConvolutionsConfig(norm="group", bias=False)
        return Wav2Vec2Config(convolutions=convolutions, convolution_gradient=0.1)
    return Wav2Vec2Config(
        transformer=TransformerConfig(
            width=1024,
            hidden_width=4096,
            num_layers=24,
            num_heads=16,
            norm_first=True,
            dropout=0.0,
            attention_dropout=0.0,
            hidden_dropout=0.0,
            layer_drop=0.0,
        )
    )


class Wav2Vec2(nn.Module):
    def __init__(self, config: Wav2Vec2Config) -> None:
        super().__init__()
        self.config = config
        width = config.transformer.width
        self.convolutions = WaveformConvolutions(config.convolutions)
        self.heard_norm = nn.LayerNorm(self.heard_width)
        self.project = Linear(self.heard_width, width)
        self.projection_dropout = Dropout(config.projection_dropout)
        self.hidden_frame = nn.Parameter(torch.rand(width))
        self.positions = PositionalConvolution(width, config.position_kernel, config.position_groups)
        self.transformer = Transformer(config.transformer)
        self.transformer.apply(_initialize)

    @property
    def width(self) -> int:
        return self.config.transformer.width

    @property
    def heard_width(self) -> int:
        return self.config.convolutions.widths[-1]

    @property
    def samples_per_frame(self) -> int:
        return self.config.convolutions.samples_per_frame

    def num_frames(self, num_samples: Count) -> Count:
        num_frames: Count = self.config.convolutions.num_frames(num_samples)
        return num_frames

    def gradient_checkpointing_enable(self) -> None:
        """Trades time for memory: the transformer's layers are computed again backward; the convolutions always are."""
        self.transformer.is_checkpointed = True

    def forward(
        self, waveforms: Tensor, lengths: Lengths, *, hidden: Tensor | None = None, draw: int | None = None
    ) -> Encoded:
        """Maps (B, N); see `Encoder`."""
        if self.config.normalize:
            waveforms = normalized(waveforms, lengths.values)
        x = self.convolutions(waveforms, lengths)  # (B, T, E)
        x = scaled_gradient(x, self.config.convolution_gradient)
        after = Lengths(self.num_frames(lengths.values))
        is_real = after.mask(x.shape[1])  # (B, T)
        heard = self.heard_norm(x)
        x = self.projection_dropout(self.project(heard))  # (B, T, D)
        if hidden is not None:
            x = torch.where(hidden[:, :, None], self.hidden_frame.to(x.dtype), x)
        x = x.masked_fill(~is_real[:, :, None], 0)
        x = x + self.positions(x)
        return Encoded(self.transformer(x, _seen(is_real), draw), after, heard)


def build(config: Mapping[str, Any]) -> Wav2Vec2:
    """What a bundle's config describes."""
    return Wav2Vec2(configs.from_dict(Wav2Vec2Config, dict(config), "bundle.json"))


def _seen(is_real: Tensor) -> Tensor | None:
    """What attention may look at; None, the fastest, where that is everything. A GPU is not kept waiting to know."""
    if is_real.device.type == "cpu" and not torch.compiler.is_compiling() and bool(is_real.all()):
        return None
    return may_see(is_real)


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)
