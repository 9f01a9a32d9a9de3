"""Recognisers on the speech encoders of `transformers`: their weights and names, and padding that changes no answer.

The network is Hugging Face's own class for CTC; it learns to hear and to score in two steps, so that what a frozen
front end heard can be kept.

Shapes: B utterances, N samples, S frames as heard, E their width, U frames that layers see, T frames of the scores,
D width, V symbols.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from sonant.audio.features.fbank import FbankConfig
from sonant.audio.features.front_end import FrontEnd, build_front_end
from sonant.audio.features.utterance import normalized
from sonant.base.errors import ConfigError
from sonant.base.lengths import Count, Lengths
from sonant.layers.waveform_convolutions import ConvolutionsConfig
from sonant.models.encoder_layers import drawn, entering, leaving, norms_behind, num_inside, through
from sonant.models.recognizer import Between, Heard, Hidden, Scores, scored
from sonant.models.speech_parts import BorrowedConvolutions, with_own_parts

WAVEFORM_FAMILIES = (
    "wav2vec2",
    "wav2vec2-conformer",
    "hubert",
    "wavlm",
    "data2vec-audio",
    "unispeech",
    "unispeech-sat",
    "sew",
)
FEATURE_FAMILIES = ("wav2vec2-bert",)
# What SeamlessM4T's feature extractor computes; it normalises each band of an utterance and lays two frames together.
_BERT_FBANK = FbankConfig()
_LEAST_VARIANCE = 1e-7


class SpeechEncoder:
    """Mixed into a network for CTC of `transformers`."""

    config: Any
    base_model: Any
    base_model_prefix: str
    dropout: nn.Module
    lm_head: nn.Module
    convolutions: BorrowedConvolutions | None
    front_end: FrontEnd | None
    normalizes: bool
    language: str

    sample_rate = 16000

    @property
    def samples_per_frame(self) -> int:
        if self.convolutions is None:
            assert self.front_end is not None
            return 2 * self.front_end.samples_per_frame
        return self.convolutions.config.samples_per_frame

    @property
    def hidden_width(self) -> int:
        return int(self.config.hidden_size)

    @property
    def num_layers(self) -> int:
        return len(self.base_model.encoder.layers)

    @property
    def drawn(self) -> str:
        return drawn(self.config)

    def behind(self, num_layers: int) -> tuple[str, ...]:
        encoder = f"{self.base_model_prefix}.encoder"
        layers = tuple(f"{encoder}.layers.{number}." for number in range(num_layers, self.num_layers))
        norm = (f"{encoder}.layer_norm.",) if norms_behind(self.config) else ()
        return ("lm_head.", f"{encoder}.upsample.", f"{self.base_model_prefix}.masked_spec_embed", *norm, *layers)

    def num_heard(self, num_samples: Count) -> Count:
        if self.convolutions is None:
            assert self.front_end is not None
            num_frames: Count = self.front_end.num_frames(num_samples) // 2
        else:
            num_frames = self.convolutions.config.num_frames(num_samples)
        return num_frames

    def num_frames(self, num_samples: Count) -> Count:
        num_frames: Count = self.num_heard(num_samples)
        return num_frames

    def num_inside(self, num_samples: Count) -> Count:
        num_frames: Count = num_inside(self.config, self.num_heard(num_samples))
        return num_frames

    def hear(self, waveforms: Tensor, lengths: Lengths) -> Heard:
        after = Lengths(self.num_heard(lengths.values))
        if self.convolutions is not None:
            if self.normalizes:
                waveforms = normalized(waveforms, lengths.values)
            return Heard(self.convolutions(waveforms, lengths), after)
        assert self.front_end is not None
        return Heard(_stacked(*self.front_end(waveforms, lengths)), after)

    def deeper(self, heard: Heard, num_layers: int, hidden: Hidden | None = None) -> Heard:
        """Maps (B, S, E) to (B, U, D)."""
        inside = self._inside(heard, hidden) if heard.num_layers is None else heard
        x, first = inside.frames, inside.num_layers
        assert first is not None
        if x.shape[0] and x.shape[1]:
            x = through(self.base_model.encoder, x, inside.lengths, first, num_layers, hidden)
        return Heard(x, inside.lengths, inside.scored, num_layers)

    def score(self, heard: Heard, hidden: Hidden | None = None) -> Scores:
        """Maps (B, S, E) to scores (B, T, V)."""
        deepest = self.deeper(heard, self.num_layers, hidden)
        x, lengths = deepest.frames, deepest.scored
        assert lengths is not None
        if x.shape[0] and x.shape[1]:
            x = leaving(self.base_model.encoder, x, lengths)
        return Scores(self.lm_head(self.dropout(x)), lengths)

    def forward(
        self, waveforms: Tensor, lengths: Lengths, between: Between | None = None, heard: Heard | None = None
    ) -> Scores:
        """Maps (B, N)."""
        return scored(self, waveforms, lengths, between, heard)

    def _inside(self, heard: Heard, hidden: Hidden | None) -> Heard:
        """Before the first layer."""
        x = self._projected(heard.frames)  # (B, S, D)
        if hidden is not None:
            x = self._hiding(x, hidden)
        x = x.masked_fill(~heard.lengths.mask(x.shape[1])[:, :, None], 0)
        if x.shape[0] and x.shape[1]:
            x = entering(self.base_model.encoder, x, heard.lengths)  # (B, U, D)
        return Heard(x, Lengths(num_inside(self.config, heard.lengths.values)), heard.lengths, 0)

    def _projected(self, frames: Tensor) -> Tensor:
        base = self.base_model
        if hasattr(base, "feature_dropout"):  # SEW
            x = base.layer_norm(frames)
            found = base.feature_dropout(base.feature_projection(x) if base.project_features else x)
        else:
            found = base.feature_projection(frames)
        projected: Tensor = found[0] if isinstance(found, tuple) else found
        return projected

    def _hiding(self, x: Tensor, hidden: Hidden) -> Tensor:
        if hidden.frames is not None:
            x = torch.where(hidden.frames[:, :, None], self.base_model.masked_spec_embed.to(x.dtype), x)
        return x if hidden.bands is None else x.masked_fill(hidden.bands[:, None, :], 0)


def listening(network: Any, *, normalizes: bool, language: str = "") -> nn.Module:
    """The same network, able to hear and score; its weights and names do not change. `language` is that of its
    adapters."""
    config = network.config
    _check(config)
    kind = type(network)
    with_own_parts(network)
    network.__class__ = type(kind.__name__, (SpeechEncoder, kind), {"__module__": kind.__module__})
    network.normalizes, network.language = normalizes, language
    network.convolutions = network.front_end = None
    if config.model_type == "wavlm":  # all layers share the positions of the first
        network.base_model.encoder.layers[0].is_looked_into = True
    if config.model_type in WAVEFORM_FAMILIES:
        # Not a child: its weights are those of the network already.
        extractor = network.base_model.feature_extractor
        for layer in extractor.conv_layers:
            layer.is_looked_into = True
        object.__setattr__(network, "convolutions", BorrowedConvolutions(extractor, _convolutions(config)))
    else:
        network.front_end = build_front_end(_BERT_FBANK)
    made: nn.Module = network
    return made


def _convolutions(config: Any) -> ConvolutionsConfig:
    norm: Literal["layer", "group"] = getattr(config, "feat_extract_norm", "layer")
    return ConvolutionsConfig(
        widths=tuple(config.conv_dim),
        kernels=tuple(config.conv_kernel),
        strides=tuple(config.conv_stride),
        norm=norm,
        bias=config.conv_bias,
    )


def _check(config: Any) -> None:
    """What is not computed here must not be passed over in silence."""
    required: Mapping[str, tuple[Any, ...]] = {
        "add_adapter": (False, None),
        "feat_extract_activation": ("gelu", None),
        "feat_extract_dropout": (0.0, None),
    }
    if config.model_type == "wav2vec2-bert":
        required = {"add_adapter": (False, None)}
    for name, values in required.items():
        if getattr(config, name, None) not in values:
            problem = f"'{name}' is {getattr(config, name)!r}; here it can only be {values[0]!r}."
            raise ConfigError(f"model.settings.{name}", problem, "Use another checkpoint.")


def _stacked(features: Tensor, lengths: Lengths) -> Tensor:
    """Maps (B, S', M) to (B, S, 2·M): each band of an utterance to mean 0 and variance 1, two frames side by side."""
    counts = lengths.values.clamp(min=1)[:, None, None]
    is_padding = ~lengths.mask(features.shape[1])[:, :, None]
    exact = features.double()
    centred = (exact - exact.sum(dim=1, keepdim=True) / counts).masked_fill(is_padding, 0)
    variance = centred.square().sum(dim=1, keepdim=True) / (counts - 1).clamp(min=1)
    normed = (centred / (variance + _LEAST_VARIANCE).sqrt()).float()
    num_pairs = features.shape[1] // 2
    pairs = normed[:, : 2 * num_pairs].reshape(len(normed), num_pairs, 2 * normed.shape[2])
    is_real = Lengths(lengths.values // 2).mask(num_pairs)
    stacked: Tensor = pairs.masked_fill(~is_real[:, :, None], 0)
    return stacked
