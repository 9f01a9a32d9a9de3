"""BEST-RQ: an encoder tells of each hidden frame which entry of a random codebook its spectrum is nearest to.

Reference: Chiu et al., "Self-supervised Learning with Random-projection Quantizer for Speech Recognition" (2022).
Unlike there, the encoder hides frames in its own way, and is told waveforms. Targets are fixed before training, so no
codebook can collapse.

Shapes: B utterances, N samples, T frames, M hidden frames, D width, S mel frames a frame, F mel bands, V entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.audio.features.cmvn import UtteranceCmvn
from sonant.audio.features.front_end import build_front_end
from sonant.audio.features.log_mel import LogMelConfig
from sonant.base import config as configs
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.layers.quantizers import RandomProjectionQuantizer
from sonant.models.encoder import Encoder
from sonant.models.wav2vec2 import Wav2Vec2, Wav2Vec2Config, size


@dataclass(frozen=True, kw_only=True)
class TargetsConfig:
    """What hidden frames are told by; the defaults are those of the paper."""

    num_mels: Annotated[int, Within(1, 1024)] = 80
    num_entries: Annotated[int, Within(2, 1 << 20)] = 8192
    width: Annotated[int, Within(1, 4096)] = 16  # of an entry
    seed: int = 0  # of projection and codebook

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class BestRqConfig:
    encoder: Wav2Vec2Config = field(default_factory=lambda: size("base"))
    targets: TargetsConfig = field(default_factory=TargetsConfig)


@dataclass(frozen=True)
class Guessed:
    """What the classification of hidden frames compares."""

    logits: Tensor  # (M, V)
    targets: Tensor  # (M,) int64


class SpectralTargets(nn.Module):
    """The entry of a random codebook for each frame of an encoder."""

    def __init__(self, config: TargetsConfig, samples_per_frame: int) -> None:
        super().__init__()
        # Centred frames with one more than their shift behind each: an encoder's frame has all of its own.
        self.mels = build_front_end(LogMelConfig(num_mels=config.num_mels, dynamic_range=None))
        self.norm = UtteranceCmvn()
        self.stacked, rest = divmod(samples_per_frame, self.mels.samples_per_frame)
        if rest or not self.stacked:
            problem = f"frames of {samples_per_frame} samples are no multiple of {self.mels.samples_per_frame}."
            raise ConfigError("encoder", problem, "Choose strides whose product is a multiple.")
        inputs = config.num_mels * self.stacked
        self.quantizer = RandomProjectionQuantizer(
            inputs, num_entries=config.num_entries, width=config.width, seed=config.seed
        )

    @torch.no_grad()
    def forward(self, waveforms: Tensor, lengths: Lengths, num_frames: int, places: Tensor) -> Tensor:
        """Maps (B, N) to the (M,) entries at `places` among the B·T frames."""
        with torch.autocast(waveforms.device.type, enabled=False):
            mels, mel_lengths = self.mels(waveforms, lengths)  # (B, T', F)
            mels = self.norm(mels, mel_lengths)
            missing = max(num_frames * self.stacked - mels.shape[1], 0)
            mels = F.pad(mels, (0, 0, 0, missing))[:, : num_frames * self.stacked]
            stacked = mels.reshape(len(mels) * num_frames, self.stacked * mels.shape[2])  # (B·T, S·F)
            found: Tensor = self.quantizer(stacked.index_select(0, places).float())
            return found


class BestRq(nn.Module):
    """Any encoder, and a guess at each hidden frame."""

    def __init__(self, encoder: Encoder, targets: TargetsConfig) -> None:
        super().__init__()
        self.encoder = encoder
        self.targets = SpectralTargets(targets, encoder.samples_per_frame)
        self.guess = nn.Linear(encoder.width, targets.num_entries)

    def gradient_checkpointing_enable(self) -> None:
        self.encoder.gradient_checkpointing_enable()

    def forward(
        self, waveforms: Tensor, lengths: Lengths, hidden: Tensor, places: Tensor, *, draw: int | None = None
    ) -> Guessed:
        """Maps (B, N); `hidden` (B, T) marks the frames that are hidden, `places` (M,) are those among the B·T."""
        encoded = self.encoder(waveforms, lengths, hidden=hidden, draw=draw)
        frames = encoded.frames.flatten(0, 1).index_select(0, places)  # (M, D)
        return Guessed(self.guess(frames), self.targets(waveforms, lengths, hidden.shape[1], places))


def build(config: Mapping[str, Any]) -> BestRq:
    """What a bundle's config describes."""
    described = configs.from_dict(BestRqConfig, dict(config), "bundle.json")
    return BestRq(Wav2Vec2(described.encoder), described.targets)
