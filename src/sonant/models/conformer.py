"""A small recogniser from scratch: filter banks, two convolutions that leave a frame each 40 ms, Conformer layers.

Shapes: B utterances, N samples, S frames of 10 ms, M bands, C channels, T frames of 40 ms, D width, V symbols.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from sonant.audio.features.cmvn import UtteranceCmvn
from sonant.audio.features.fbank import FbankConfig
from sonant.audio.features.front_end import build_front_end
from sonant.base import config as configs
from sonant.base.bounds import Within, check_fields
from sonant.base.lengths import Count, Lengths, frames_after
from sonant.layers.attention import may_see
from sonant.layers.conformer import ConformerLayer, ConformerLayerConfig
from sonant.layers.dropout import Dropout
from sonant.layers.linear import Linear
from sonant.layers.positional_convolution import PositionalConvolution
from sonant.models.recognizer import Between, Heard, Hidden, Scores, scored

_KERNELS, _STRIDES = (3, 3), (2, 2)  # over frames, unpadded, and over bands


@dataclass(frozen=True, kw_only=True)
class ConformerConfig:
    kind: Literal["conformer"] = "conformer"
    front_end: FbankConfig = field(default_factory=FbankConfig)
    layer: ConformerLayerConfig = field(default_factory=ConformerLayerConfig)
    num_layers: Annotated[int, Within(1, 1000)] = 8
    channels: Annotated[int, Within(1, 4096)] = 32  # of the convolutions that leave one frame of four
    position_kernel: Annotated[int, Within(1, 1001)] = 31  # frames
    final_dropout: Annotated[float, Within(0, 0.99)] = 0.1

    def __post_init__(self) -> None:
        check_fields(self)


class Conformer(nn.Module):
    def __init__(self, config: ConformerConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config, width = config, config.layer.width
        self.front_end, self.cmvn = build_front_end(config.front_end), UtteranceCmvn()
        self.first = nn.Conv2d(1, config.channels, 3, 2)
        self.second = nn.Conv2d(config.channels, config.channels, 3, 2)
        self.project = Linear(config.channels * frames_after(config.front_end.width, _KERNELS, _STRIDES), width)
        self.dropout = Dropout(config.layer.dropout)
        self.positions = PositionalConvolution(width, config.position_kernel, config.layer.num_heads)
        self.layers = nn.ModuleList(ConformerLayer(config.layer) for _ in range(config.num_layers))
        self.final_dropout = Dropout(config.final_dropout)
        self.head = Linear(width, vocabulary_size)
        self.is_checkpointed = False

    @property
    def sample_rate(self) -> int:
        return self.config.front_end.sample_rate

    @property
    def samples_per_frame(self) -> int:
        return 4 * self.front_end.samples_per_frame

    @property
    def hidden_width(self) -> int:
        return self.config.front_end.width

    @property
    def num_layers(self) -> int:
        return self.config.num_layers

    @property
    def drawn(self) -> str:
        return "layer.dropout" if self.config.layer.dropout else ""

    def behind(self, num_layers: int) -> tuple[str, ...]:
        return "head.", *(f"layers.{number}." for number in range(num_layers, self.num_layers))

    def num_heard(self, num_samples: Count) -> Count:
        num_frames: Count = self.front_end.num_frames(num_samples)
        return num_frames

    def num_frames(self, num_samples: Count) -> Count:
        num_frames: Count = frames_after(self.num_heard(num_samples), _KERNELS, _STRIDES)
        return num_frames

    def num_inside(self, num_samples: Count) -> Count:
        num_frames: Count = self.num_frames(num_samples)
        return num_frames

    def gradient_checkpointing_enable(self) -> None:
        self.is_checkpointed = True

    def hear(self, waveforms: Tensor, lengths: Lengths) -> Heard:
        features, after = self.front_end(waveforms, lengths)
        return Heard(self.cmvn(features, after), after)

    def deeper(self, heard: Heard, num_layers: int, hidden: Hidden | None = None) -> Heard:
        """Maps (B, S, M) to (B, T, D)."""
        inside = self._inside(heard, hidden) if heard.num_layers is None else heard
        x, lengths = inside.frames, inside.lengths
        is_real: Tensor | None = lengths.mask(x.shape[1])
        assert is_real is not None
        seen: Tensor | None = may_see(is_real)
        if x.device.type == "cpu" and not torch.compiler.is_compiling() and bool(is_real.all()):
            is_real = seen = None
        for layer in self.layers[inside.num_layers or 0 : num_layers] if x.shape[1] else ():
            if self.is_checkpointed and torch.is_grad_enabled():
                x = checkpoint(layer, x, seen, is_real, use_reentrant=False)
            else:
                x = layer(x, seen, is_real)
        return Heard(x, lengths, lengths, num_layers)

    def score(self, heard: Heard, hidden: Hidden | None = None) -> Scores:
        """Maps (B, S, M) to scores (B, T, V)."""
        deepest = self.deeper(heard, self.num_layers, hidden)
        return Scores(self.head(self.final_dropout(deepest.frames)), deepest.lengths)

    def forward(
        self, waveforms: Tensor, lengths: Lengths, between: Between | None = None, heard: Heard | None = None
    ) -> Scores:
        """Maps (B, N)."""
        return scored(self, waveforms, lengths, between, heard)

    def _inside(self, heard: Heard, hidden: Hidden | None) -> Heard:
        """Before the first layer."""
        lengths = heard.lengths.after(_KERNELS, _STRIDES)
        x = self._fewer(_hiding(heard.frames, hidden))  # (B, T, D)
        x = x.masked_fill(~lengths.mask(x.shape[1])[:, :, None], 0)
        return Heard(self.dropout(x + self.positions(x)), lengths, lengths, 0)

    def _fewer(self, features: Tensor) -> Tensor:
        """Maps (B, S, M) to (B, T, D)."""
        num_frames = frames_after(features.shape[1], _KERNELS, _STRIDES)
        if not len(features) or not num_frames:
            return features.new_zeros(len(features), num_frames, self.config.layer.width)
        # Channels last: convolutions and their gradients find what they need side by side.
        x = features[:, None].contiguous(memory_format=torch.channels_last)  # (B, 1, S, M)
        x = F.gelu(self.first(x))
        x = F.gelu(self.second(x))  # (B, C, T, M/4)
        fewer: Tensor = self.project(x.transpose(1, 2).flatten(2))
        return fewer


def build(config: Mapping[str, Any]) -> Conformer:
    """What a bundle's config describes."""
    values = dict(config)
    vocabulary_size = values.pop("vocabulary_size")
    return Conformer(configs.from_dict(ConformerConfig, values, "bundle.json"), vocabulary_size)


def _hiding(features: Tensor, hidden: Hidden | None) -> Tensor:
    """Zero is the mean of a band."""
    if hidden is None:
        return features
    if hidden.frames is not None:
        features = features.masked_fill(hidden.frames[:, :, None], 0)
    return features if hidden.bands is None else features.masked_fill(hidden.bands[:, None, :], 0)
