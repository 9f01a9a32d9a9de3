"""How Moonshine and Whisper hear: what CTC scores and what a decoder writes from is the same.

Moonshine hears the waveform; its norm over time and channels counts real frames only. Whisper hears 30 s, of which
what lies behind the end is silence, in a batch as alone.

Shapes: B utterances, N samples, S frames as heard, D width.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sonant.audio.features.front_end import FrontEnd, build_front_end
from sonant.audio.features.log_mel import WHISPER
from sonant.base.errors import SonantError
from sonant.base.lengths import Count, Lengths, frames_after
from sonant.models.encoder_layers import drawn, left_out
from sonant.models.recognizer import Heard, Hidden

FAMILIES = ("moonshine", "whisper")
_LEAST_VARIANCE = 1e-5


class _Layers:
    """What both have in common."""

    encoder: Any
    hidden_width: int
    sample_rate = 16000

    @property
    def num_layers(self) -> int:
        return len(self.encoder.layers)

    @property
    def drawn(self) -> str:
        return drawn(self.encoder.config)

    def behind(self, num_layers: int) -> tuple[str, ...]:
        layers = (f"encoder.layers.{number}." for number in range(num_layers, self.num_layers))
        return "lm_head.", "encoder.layer_norm.", *layers


class MoonshineHearing(_Layers):
    """Mixed into a module that has an encoder."""

    kernels, strides = (127, 7, 3), (64, 3, 2)
    samples_per_frame = 64 * 3 * 2

    def num_heard(self, num_samples: Count) -> Count:
        num_frames: Count = frames_after(num_samples, self.kernels, self.strides)
        return num_frames

    def num_frames(self, num_samples: Count) -> Count:
        num_frames: Count = self.num_heard(num_samples)
        return num_frames

    def num_inside(self, num_samples: Count) -> Count:
        num_frames: Count = self.num_heard(num_samples)
        return num_frames

    def hear(self, waveforms: Tensor, lengths: Lengths) -> Heard:
        after = Lengths(self.num_heard(lengths.values))
        if not len(waveforms) or not self.num_heard(waveforms.shape[1]):
            return Heard(waveforms.new_zeros(len(waveforms), 0, self.hidden_width), after)
        x = self.encoder.conv1(waveforms[:, None]).tanh()  # (B, D, S₁)
        x = self._normed(x, lengths.after(self.kernels[:1], self.strides[:1]))
        x = F.gelu(self.encoder.conv2(x))
        x = F.gelu(self.encoder.conv3(x)).transpose(1, 2)  # (B, S, D)
        return Heard(x.masked_fill(~after.mask(x.shape[1])[:, :, None], 0), after)

    def deeper(self, heard: Heard, num_layers: int, hidden: Hidden | None = None) -> Heard:
        x = _hiding(heard.frames, hidden)
        if not x.shape[0] or not x.shape[1]:
            return replace(heard, frames=x, num_layers=num_layers)
        is_real = heard.lengths.mask(x.shape[1])
        is_whole = x.device.type == "cpu" and bool(is_real.all())
        # An utterance of no frame sees its padding, and no NaN.
        seen = Lengths(heard.lengths.values.clamp(min=1)).mask(x.shape[1])[:, None, None, :]
        places = torch.arange(x.shape[1], device=x.device)[None]
        turned = self.encoder.rotary_emb(x, position_ids=places)
        for layer in self.encoder.layers[heard.num_layers or 0 : num_layers]:
            x = layer(
                x, attention_mask=None if is_whole else seen, position_ids=places, position_embeddings=turned
            )  # (B, S, D)
        return replace(heard, frames=x, num_layers=num_layers)

    def encode(self, heard: Heard, hidden: Hidden | None = None) -> Tensor:
        """What the layers make of (B, S, D)."""
        encoded: Tensor = self.encoder.layer_norm(self.deeper(heard, self.num_layers, hidden).frames)
        return encoded

    def _normed(self, x: Tensor, lengths: Lengths) -> Tensor:
        """Norm over channels and real frames of x (B, D, S₁), in float32."""
        norm, wide = self.encoder.groupnorm, x.float()
        is_padding = ~lengths.mask(x.shape[2])[:, None, :]
        count = (lengths.values.clamp(min=1) * x.shape[1])[:, None, None]
        mean = wide.masked_fill(is_padding, 0).sum(dim=(1, 2), keepdim=True) / count
        off = (wide - mean).masked_fill(is_padding, 0)
        variance = off.square().sum(dim=(1, 2), keepdim=True) / count
        normed = off * (variance + _LEAST_VARIANCE).rsqrt()
        scaled: Tensor = (normed * norm.weight[:, None] + norm.bias[:, None]).to(x.dtype)
        return scaled


class WhisperHearing(_Layers):
    """Mixed into a module that has an encoder, and a front end for it."""

    front_end: FrontEnd

    @property
    def most_frames(self) -> int:
        return int(self.encoder.config.max_source_positions)

    @property
    def samples_per_frame(self) -> int:
        return 2 * self.front_end.samples_per_frame

    def num_heard(self, num_samples: Count) -> Count:
        """All of the window, silence behind the end too."""
        num_frames: Count = self.num_frames(num_samples) * 0 + self.most_frames
        return num_frames

    def num_frames(self, num_samples: Count) -> Count:
        num_frames: Count = (num_samples // self.front_end.samples_per_frame + 1) // 2
        return num_frames

    def num_inside(self, num_samples: Count) -> Count:
        num_frames: Count = self.num_heard(num_samples)
        return num_frames

    def hear(self, waveforms: Tensor, lengths: Lengths) -> Heard:
        scored = Lengths(self.num_frames(lengths.values))
        heard = Lengths(self.num_heard(lengths.values))
        if scored.longest > self.most_frames:
            longest = lengths.longest / self.sample_rate
            most = self.most_frames * self.samples_per_frame / self.sample_rate
            problem = f"{longest:.1f} s were given; Whisper hears {most:g} s at most."
            raise SonantError("model", problem, f"Leave out longer utterances: corpora.max_seconds={most:g}.")
        if not len(waveforms):
            return Heard(waveforms.new_zeros(0, 0, self.hidden_width), heard, scored)
        features, _ = self.front_end(waveforms, lengths)  # (B, 2·S, M)
        x = F.gelu(self.encoder.conv1(features[:, : 2 * self.most_frames].transpose(1, 2)))
        return Heard(F.gelu(self.encoder.conv2(x)).transpose(1, 2), heard, scored)

    def deeper(self, heard: Heard, num_layers: int, hidden: Hidden | None = None) -> Heard:
        x, rate = _hiding(heard.frames, hidden), self.encoder.layerdrop
        if heard.num_layers is None and len(x):
            x = x + self.encoder.embed_positions.weight  # (B, S, D)
            x = F.dropout(x, self.encoder.dropout, self.encoder.training)
        first = heard.num_layers or 0
        for number, layer in enumerate(self.encoder.layers[first:num_layers] if len(x) else (), first):
            if not left_out(self.encoder, number, rate, hidden):
                x = layer(x, None)
        return replace(heard, frames=x, num_layers=num_layers)

    def encode(self, heard: Heard, hidden: Hidden | None = None) -> Tensor:
        """What the layers make of (B, S, D)."""
        encoded: Tensor = self.encoder.layer_norm(self.deeper(heard, self.num_layers, hidden).frames)
        return encoded


def whisper_front_end(config: Any) -> FrontEnd:
    """Log-mels of as many bands and seconds as the encoder wants."""
    seconds = config.max_source_positions * 2 * WHISPER.frame_shift_ms / 1000
    return build_front_end(replace(WHISPER, num_mels=config.num_mel_bins, pad_to_seconds=seconds))


def _hiding(x: Tensor, hidden: Hidden | None) -> Tensor:
    if hidden is None:
        return x
    if hidden.frames is not None:
        x = x.masked_fill(hidden.frames[:, :, None], 0)
    return x if hidden.bands is None else x.masked_fill(hidden.bands[:, None, :], 0)
