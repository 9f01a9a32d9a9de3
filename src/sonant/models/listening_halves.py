"""Recognisers on the listening half of Moonshine and Whisper: their encoder, with a head for CTC in place of a decoder.

Moonshine hears the waveform; its norm over time and channels counts real frames only. Whisper hears 30 s, of which
what lies behind the end is silence, in a batch as alone.

Shapes: B utterances, N samples, S frames as heard, D width, T frames of the scores, V symbols.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.audio.features.front_end import build_front_end
from sonant.audio.features.log_mel import WHISPER
from sonant.base.errors import SonantError
from sonant.base.lengths import Count, Lengths, frames_after
from sonant.layers.dropout import Dropout
from sonant.layers.linear import Linear
from sonant.models.recognizer import Between, Heard, Hidden, Scores, scored
from sonant.models.speech_parts import quietly, with_own_parts

FAMILIES = ("moonshine", "whisper")
_LEAST_VARIANCE = 1e-5


class _ListeningHalf(nn.Module):
    """What both have in common; `encoder` bears the names that it has below `model.` in their own checkpoints."""

    sample_rate = 16000

    def __init__(self, encoder: Any, width: int, vocabulary_size: int, final_dropout: float) -> None:
        super().__init__()
        with_own_parts(encoder)
        self.config, self.encoder = encoder.config, encoder
        self.dropout = Dropout(final_dropout)
        self.lm_head = Linear(width, vocabulary_size)
        self.hidden_width = width

    def gradient_checkpointing_enable(self) -> None:
        self.encoder.gradient_checkpointing_enable()

    def forward(
        self, waveforms: Tensor, lengths: Lengths, between: Between | None = None, heard: Heard | None = None
    ) -> Scores:
        """Maps (B, N)."""
        return scored(self, waveforms, lengths, between, heard)

    def _scored(self, x: Tensor, lengths: Lengths) -> Scores:
        return Scores(self.lm_head(self.dropout(x)), lengths)


class MoonshineCtc(_ListeningHalf):
    kernels, strides = (127, 7, 3), (64, 3, 2)
    samples_per_frame = 64 * 3 * 2

    def num_heard(self, num_samples: Count) -> Count:
        num_frames: Count = frames_after(num_samples, self.kernels, self.strides)
        return num_frames

    def num_frames(self, num_samples: Count) -> Count:
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

    def score(self, heard: Heard, hidden: Hidden | None = None) -> Scores:
        x = _hiding(heard.frames, hidden)
        if not x.shape[0] or not x.shape[1]:
            return self._scored(x, heard.lengths)
        is_real = heard.lengths.mask(x.shape[1])
        is_whole = x.device.type == "cpu" and bool(is_real.all())
        # An utterance of no frame sees its padding, and no NaN.
        seen = Lengths(heard.lengths.values.clamp(min=1)).mask(x.shape[1])[:, None, None, :]
        places = torch.arange(x.shape[1], device=x.device)[None]
        turned = self.encoder.rotary_emb(x, position_ids=places)
        for layer in self.encoder.layers:
            x = layer(
                x, attention_mask=None if is_whole else seen, position_ids=places, position_embeddings=turned
            )  # (B, S, D)
        return self._scored(self.encoder.layer_norm(x), heard.lengths)

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


class WhisperCtc(_ListeningHalf):
    def __init__(self, encoder: Any, width: int, vocabulary_size: int, final_dropout: float) -> None:
        super().__init__(encoder, width, vocabulary_size, final_dropout)
        mels, self.most_frames = self.config.num_mel_bins, self.config.max_source_positions
        seconds = self.most_frames * 2 * WHISPER.frame_shift_ms / 1000
        self.front_end = build_front_end(replace(WHISPER, num_mels=mels, pad_to_seconds=seconds))

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

    def score(self, heard: Heard, hidden: Hidden | None = None) -> Scores:
        assert heard.scored is not None
        x = _hiding(heard.frames, hidden)
        if not len(x):
            return self._scored(x, heard.scored)
        x = x + self.encoder.embed_positions.weight  # (B, S, D)
        x = F.dropout(x, self.encoder.dropout, self.training)
        for layer in self.encoder.layers:
            x = layer(x, None)
        return self._scored(self.encoder.layer_norm(x)[:, : heard.scored.longest], heard.scored)


def new_half(config: Any, vocabulary_size: int, final_dropout: float) -> nn.Module:
    """One with weights as chance has them."""
    if config.model_type == "moonshine":
        from transformers.models.moonshine.modeling_moonshine import MoonshineEncoder

        return MoonshineCtc(MoonshineEncoder(config), config.hidden_size, vocabulary_size, final_dropout)
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    return WhisperCtc(WhisperEncoder(config), config.d_model, vocabulary_size, final_dropout)


def load_half(folder: str, config: Any, vocabulary_size: int, final_dropout: float) -> tuple[nn.Module, list[str]]:
    """One with the encoder of a folder, and the weights that the folder did not have; without a folder, by chance."""
    from transformers import AutoModel

    model = new_half(config, vocabulary_size, final_dropout)
    if not folder:
        return model, []
    try:
        with quietly():
            whole, told = AutoModel.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    except (OSError, ValueError, RuntimeError) as error:
        problem = f"it cannot be loaded: {str(error).splitlines()[0]}"
        raise SonantError(folder, problem, "Look at its config.json and its weights.") from error
    missing = sorted(name for name in told["missing_keys"] if "encoder." in name)
    if missing:
        raise SonantError(folder, f"weights of the encoder are missing: {missing[0]} …", "Name a whole checkpoint.")
    encoder: Any = model.encoder
    encoder.load_state_dict(whole.encoder.state_dict())
    return model, ["lm_head.weight", "lm_head.bias"]


def _hiding(x: Tensor, hidden: Hidden | None) -> Tensor:
    if hidden is None:
        return x
    if hidden.frames is not None:
        x = x.masked_fill(hidden.frames[:, :, None], 0)
    return x if hidden.bands is None else x.masked_fill(hidden.bands[:, None, :], 0)
