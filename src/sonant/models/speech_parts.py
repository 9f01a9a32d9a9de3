"""Parts of the speech encoders of `transformers`, exchanged in place: padding changes nothing, processors are faster.

No weight has another name afterwards. Where theirs let padding in (a group norm over time, convolutions behind one
another, the one inside of a Conformer's layer), ours are told which frames are real before each forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.layers.dropout import dropout as drop
from sonant.layers.dropout_attention import attend_with_dropout
from sonant.layers.linear import Linear
from sonant.layers.positional_convolution import convolved
from sonant.layers.waveform_convolutions import ConvolutionsConfig, WaveformConvolutions, norms_of
from sonant.models.exchanged import FasterDropout, choose_attention

ATTENTION = "sonant_speech"  # what a config calls the attention below
_SHORT = 1500  # frames of a row; what the products keep of longer ones takes more memory than is gained in time


class BorrowedConvolutions(WaveformConvolutions):
    """The stack of convolutions over the weights of another module; it has none of its own."""

    def __init__(self, extractor: Any, config: ConvolutionsConfig) -> None:
        nn.Module.__init__(self)
        self.config = config
        # In a tuple, so that the weights are not counted twice; looked up anew, since others may exchange them.
        self.layers = tuple(_BorrowedLayer(layer) for layer in extractor.conv_layers)  # type: ignore[assignment]
        self.norms = norms_of(config)


class _BorrowedLayer:
    def __init__(self, layer: Any) -> None:
        self._layer = layer

    @property
    def weight(self) -> Tensor:
        found: Tensor = self._layer.conv.weight
        return found

    @property
    def bias(self) -> Tensor | None:
        found: Tensor | None = self._layer.conv.bias
        return found

    @property
    def scale(self) -> Tensor | None:
        return self._layer.layer_norm.weight if hasattr(self._layer, "layer_norm") else None

    @property
    def shift(self) -> Tensor | None:
        return self._layer.layer_norm.bias if hasattr(self._layer, "layer_norm") else None


class _Masked:
    """Mixed into a module that must know which frames (B, T) are real; None: all are."""

    is_real: Tensor | None = None

    def _without_padding(self, x: Tensor) -> Tensor:
        """Zeroes padding of x (B, D, T)."""
        return x if self.is_real is None else x.masked_fill(~self.is_real[:, None, :], 0)


class _PositionalConvolution(_Masked):
    """One wide convolution whose input lies channels last: 3 times as fast forward on a CPU as `conv1d`."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Maps (B, T, D), zero on padding, to what is added to it."""
        convolution: Any = self.conv  # type: ignore[attr-defined]
        x = hidden_states.transpose(1, 2)  # (B, D, T)
        if getattr(self, "batch_norm", None) is not None:
            x = self._without_padding(self.batch_norm(x))  # type: ignore[attr-defined]
        y = convolved(x.transpose(1, 2), convolution.weight, convolution.bias, convolution.groups)
        activated: Tensor = self.activation(y)  # type: ignore[attr-defined]
        return activated


class _PositionalConvolutions(_Masked):
    """Several, one behind the other: each must find silence behind the end."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        x = hidden_states.transpose(1, 2)
        for layer in self.layers:  # type: ignore[attr-defined]
            x = layer(self._without_padding(x))
        return x.transpose(1, 2)


class _Gate(_Masked, nn.GLU):
    """The gate in front of a Conformer's depthwise convolution, which must find silence behind the end."""

    def forward(self, x: Tensor) -> Tensor:
        """Maps (B, 2·D, T) to (B, D, T)."""
        return self._without_padding(super().forward(x))


class _SettledNorm(nn.BatchNorm1d):
    """Keeps the statistics of its pretraining, so that no utterance depends on those beside it."""

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)


class _WavLmAttention:
    """With positions as a bias that each frame weighs."""

    def torch_multi_head_self_attention(
        self, hidden_states: Tensor, attention_mask: Tensor | None, gated_position_bias: Tensor
    ) -> tuple[Tensor, None]:
        """Maps (B, T, D) with real frames (B, T) and bias (B·H, T, T) to (B, T, D)."""
        own: Any = self
        rows, num_frames, width = hidden_states.shape
        query, key, value = (
            project(hidden_states).view(rows, num_frames, own.num_heads, own.head_dim).transpose(1, 2)  # (B, H, T, C)
            for project in (own.q_proj, own.k_proj, own.v_proj)
        )
        bias = gated_position_bias.view(rows, own.num_heads, num_frames, num_frames)
        mask = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        chance = own.dropout if own.training else 0.0
        found, _ = attend(own, query, key, value, mask, dropout=chance, position_bias=bias)
        return own.out_proj(found.reshape(rows, num_frames, width)), None


_EXCHANGED = {  # the end of a class's name, and what its instances become
    "PositionalConvEmbedding": _PositionalConvolution,
    "WavLMAttention": _WavLmAttention,
}
_UNTOUCHED = {"SEWPositionalConvEmbedding"}  # it has a stride


def with_own_parts(network: Any) -> None:
    """Exchanges them all; the attention too, where theirs can be chosen."""
    for module in list(network.modules()):
        for name, part in list(module.named_children()):
            if type(part) is nn.Dropout:
                part.__class__ = FasterDropout
            elif type(part) is nn.Linear:
                part.__class__ = Linear
            elif type(part) is nn.GLU:
                setattr(module, name, _Gate(part.dim))
            elif type(part) is nn.BatchNorm1d:
                part.__class__ = _SettledNorm
            else:
                _exchange(part)
    if getattr(network, "_supports_sdpa", False):
        choose_attention(network, ATTENTION, attend)


@contextmanager
def quietly() -> Iterator[None]:
    """Without bars and reports of transformers: what matters of them is told in our own words."""
    from transformers.utils import logging

    level, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if had_bars:
            logging.enable_progress_bar()


def tell_real(network: nn.Module, is_real: Tensor | None) -> None:
    """Says which frames (B, T) of the next forward pass are real; None: all."""
    for part in _masked(network):
        part.is_real = is_real


def _masked(network: nn.Module) -> Iterator[_Masked]:
    return (part for part in network.modules() if isinstance(part, _Masked))


def _exchange(part: nn.Module) -> None:
    kind = type(part)
    if kind.__name__ in _UNTOUCHED:
        return
    for end, ours in _EXCHANGED.items():
        if kind.__name__.endswith(end):
            mixed = _PositionalConvolutions if hasattr(part, "layers") and end.startswith("Positional") else ours
            part.__class__ = type(kind.__name__, (mixed, kind), {"__module__": kind.__module__})


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    position_bias: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Maps (B, H, T, C) to (B, T, H, C), as `transformers` asks its kinds of attention; no frame is too early."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (part.repeat_interleave(groups, dim=1) for part in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    mask = attention_mask
    if position_bias is not None:
        mask = position_bias if mask is None else position_bias.masked_fill(~mask, -torch.inf)
        if dropout and query.device.type == "cpu":  # unlike below, the bias gets a gradient
            weights = ((query * scale) @ key.transpose(2, 3) + mask).softmax(dim=-1)  # (B, H, T, T)
            return (drop(weights, dropout) @ value).transpose(1, 2), None
    elif _is_product_faster(query, dropout):
        return attend_with_dropout(query, key, value, mask, scale, dropout).transpose(1, 2), None
    found = F.scaled_dot_product_attention(query, key, value, mask, dropout_p=dropout, scale=scale)
    return found.transpose(1, 2), None


def _is_product_faster(query: Tensor, dropout: float) -> bool:
    """Than torch's kernel, which in bf16 takes twice as long forward and backward, and keeps nothing of all pairs."""
    is_short = query.dtype == torch.bfloat16 and torch.is_grad_enabled() and query.shape[2] <= _SHORT
    return query.device.type == "cpu" and (dropout > 0 or is_short)
