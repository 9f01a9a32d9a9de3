"""From samples to frames: the strided convolutions that wav2vec 2.0 listens with, each followed by norm and GELU.

Frames lie side by side in memory (channels last), so a window of frames is one stretch and a convolution one matrix
product. Of the forward pass only the products behind the first layer are kept; norms, GELUs and the first product, with
its one channel, are computed again backward, which costs less than the memory would. On a CPU each utterance goes alone
through the whole stack, without its padding: its frames stay in the cache, and its statistics are its own. On a GPU all
go together, and statistics leave the padding out.

Shapes: B utterances, N samples, R rows at once, S and T frames before and after a convolution, C and E channels before
and after it, K taps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.base.lengths import Count, Lengths, frames_after, samples_before
from sonant.layers import strided_product as product
from sonant.layers.channel_norms import NO_NORM, Affine, ChannelNorm, LayerNorm, TimeNorm
from sonant.layers.linear import computing_dtype

_ROUND = 8  # frames
_Parameters = Sequence[Tensor | None]  # weight, bias, scale and shift of each layer


@dataclass(frozen=True, kw_only=True)
class ConvolutionsConfig:
    """The defaults are those of every published size: 16000 samples become 49 frames of 20 ms."""

    widths: Annotated[tuple[int, ...], Within(1, 65536)] = (512, 512, 512, 512, 512, 512, 512)
    kernels: Annotated[tuple[int, ...], Within(1, 65536)] = (10, 3, 3, 3, 3, 2, 2)
    strides: Annotated[tuple[int, ...], Within(1, 65536)] = (5, 2, 2, 2, 2, 2, 2)
    norm: Literal["layer", "group"] = "layer"  # over the channels of every layer; or over time, after the first only
    bias: bool = True

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("kernels", "strides"):
            if len(getattr(self, name)) != len(self.widths):
                problem = f"{len(getattr(self, name))} numbers were found, as many as widths ({len(self.widths)}) are"
                raise ConfigError(name, f"{problem} required.", "Give each convolution one of each.")

    @property
    def samples_per_frame(self) -> int:
        return torch.Size(self.strides).numel()

    def num_frames(self, num_samples: Count) -> Count:
        num_frames: Count = frames_after(num_samples, self.kernels, self.strides)
        return num_frames


def norms_of(config: ConvolutionsConfig) -> tuple[ChannelNorm, ...]:
    """What follows each convolution."""
    if config.norm == "group":
        return TimeNorm(), *[NO_NORM] * (len(config.widths) - 1)
    return (LayerNorm(),) * len(config.widths)


class WaveformConvolutions(nn.Module):
    """Its gradients are those of its parameters; the waveform gets none."""

    def __init__(self, config: ConvolutionsConfig) -> None:
        super().__init__()
        self.config = config
        inputs = (1, *config.widths[:-1])
        self.layers = nn.ModuleList(
            _Convolution(*sizes, has_bias=config.bias, is_normed=config.norm == "layer" or number == 0)
            for number, sizes in enumerate(zip(inputs, config.widths, config.kernels, strict=True))
        )
        self.norms = norms_of(config)

    def forward(self, waveforms: Tensor, lengths: Lengths) -> Tensor:
        """Maps (B, N) samples to (B, T, E) frames, zero on padding."""
        parameters: list[Tensor | None] = [
            getattr(layer, name) for layer in self.layers for name in ("weight", "bias", "scale", "shift")
        ]
        if torch.compiler.is_compiling():
            return self._traced(waveforms, lengths, parameters)
        assert parameters[0] is not None
        dtype = computing_dtype(waveforms, parameters[0])
        frames: Tensor = _Stack.apply(waveforms.to(dtype), lengths, self.config, self.norms, *parameters)  # type: ignore[no-untyped-call]
        return frames

    def _traced(self, waveforms: Tensor, lengths: Lengths, parameters: _Parameters) -> Tensor:
        """The same by plain operations, for compilers and exported graphs."""
        x = waveforms.unsqueeze(1)  # (B, 1, N)
        for number, (stride, norm) in enumerate(zip(self.config.strides, self.norms, strict=True)):
            weight, bias, scale, shift = parameters[4 * number : 4 * number + 4]
            assert weight is not None
            z = F.conv1d(x, weight, bias, stride).transpose(1, 2)  # (B, T, E)
            normed, _ = norm.forward(z, Affine(scale, shift), _is_real(lengths, self.config, number, z))
            x = F.gelu(normed).transpose(1, 2)
        is_real = lengths.after(self.config.kernels, self.config.strides).mask(x.shape[2])
        return x.transpose(1, 2).masked_fill(~is_real[:, :, None], 0)


class _Convolution(nn.Module):
    """The parameters of one layer; what is done with them is done for the whole stack at once."""

    is_looked_into = True  # whoever shards weights must not wait for a call

    def __init__(self, inputs: int, outputs: int, kernel: int, *, has_bias: bool, is_normed: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.kaiming_normal_(torch.empty(outputs, inputs, kernel)))
        bound = (inputs * kernel) ** -0.5
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound)) if has_bias else None
        self.scale = nn.Parameter(torch.ones(outputs)) if is_normed else None
        self.shift = nn.Parameter(torch.zeros(outputs)) if is_normed else None


@dataclass(frozen=True)
class _Layer:
    """One layer as the stack computes it."""

    weight: Tensor  # (E, K·C) in the computing type, taps before channels
    bias: Tensor | None
    affine: Affine
    kernel: int
    stride: int
    norm: ChannelNorm

    def hear(self, x: Tensor) -> Tensor:
        """Maps (R, S, C) to (R, T, E), before norm and GELU."""
        return product.forward(x, self.weight, self.bias, self.kernel, self.stride)

    def normed(self, z: Tensor, is_real: Tensor | None) -> tuple[Tensor, Any]:
        return self.norm.forward(z, self.affine, is_real)


class _Stack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        waveforms: Tensor,
        lengths: Lengths,
        config: ConvolutionsConfig,
        norms: Sequence[ChannelNorm],
        *parameters: Tensor | None,
    ) -> Tensor:
        layers = _layers(config, norms, parameters, waveforms.dtype)
        num_frames = config.num_frames(waveforms.shape[1])
        frames = waveforms.new_zeros(len(waveforms), num_frames, config.widths[-1])  # (B, T, E)
        kept: list[Tensor] = []
        keeps = any(ctx.needs_input_grad)
        groups = list(_groups(waveforms, lengths, config))
        if not keeps and config.norm == "layer" and waveforms.device.type == "cpu":
            waveforms, groups = _rounded(waveforms, groups, config)
        with torch.autocast(waveforms.device.type, enabled=False):
            for rows, num_samples in groups:
                x = waveforms[rows, :num_samples, None]  # (R, N, 1)
                for number, layer in enumerate(layers):
                    z = layer.hear(x)
                    x = torch.ops.aten.gelu_(layer.normed(z, _is_real(lengths, config, number, z))[0])
                    if keeps and number > 0:
                        kept.append(z)
                heard = x[:, :num_frames]
                frames[rows, : heard.shape[1]] = heard
        ctx.save_for_backward(waveforms, lengths.values, *parameters, *kept)
        ctx.config, ctx.norms, ctx.groups, ctx.num_parameters = config, norms, groups, len(parameters)
        is_padding = ~lengths.after(config.kernels, config.strides).mask(num_frames)
        return frames.masked_fill_(is_padding[:, :, None], 0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        config: ConvolutionsConfig = ctx.config
        waveforms, num_samples, *saved = ctx.saved_tensors
        parameters, kept = saved[: ctx.num_parameters], saved[ctx.num_parameters :]
        lengths = Lengths(num_samples)
        layers = _layers(config, ctx.norms, parameters, waveforms.dtype)
        totals = [torch.zeros_like(tensor, dtype=torch.float32) for tensor in parameters if tensor is not None]
        is_real = lengths.after(config.kernels, config.strides).mask(gradients[0].shape[1])
        gradient = gradients[0] * is_real[:, :, None]  # (B, T, E)
        behind = len(layers) - 1  # products kept of each group
        with torch.autocast(waveforms.device.type, enabled=False):
            for number, (rows, group_samples) in enumerate(ctx.groups):
                samples = waveforms[rows, :group_samples, None]  # (R, N, 1)
                products = [layers[0].hear(samples), *kept[number * behind : (number + 1) * behind]]
                found = _backward(
                    layers,
                    samples,
                    products,
                    gradient[rows, : products[-1].shape[1]].contiguous(),
                    [_is_real(lengths, config, layer, z) for layer, z in enumerate(products)],
                )
                for total, part in zip(totals, found, strict=True):
                    total.add_(part)
        given = iter(totals)
        of_parameters = [None if tensor is None else next(given).to(tensor.dtype) for tensor in parameters]
        return None, None, None, None, *of_parameters


def _backward(
    layers: Sequence[_Layer],
    samples: Tensor,
    products: Sequence[Tensor],
    gradient: Tensor,
    is_real: Sequence[Tensor | None],
) -> list[Tensor]:
    """The gradients of all parameters there are, in their order."""
    found: list[list[Tensor]] = []
    normed, statistics = layers[-1].normed(products[-1], is_real[-1])
    for number in reversed(range(len(layers))):
        layer, z = layers[number], products[number]
        dn = torch.ops.aten.gelu_backward(gradient, normed)
        dz, of_norm = layer.norm.backward(dn, z, statistics, layer.affine, is_real[number])
        if number > 0:
            normed, statistics = layers[number - 1].normed(products[number - 1], is_real[number - 1])
            x = F.gelu(normed)
        else:
            x = samples
        of_weight = product.of_weight(dz, x, layer.kernel, layer.stride)  # (E, C, K)
        of_bias = [] if layer.bias is None else [dz.sum(dim=(0, 1), dtype=torch.float32)]
        found.append([of_weight, *of_bias, *of_norm])
        if number > 0:
            gradient = product.of_input(dz, layer.weight, x.shape, layer.kernel, layer.stride)
    return [part for parts in reversed(found) for part in parts]


def _layers(
    config: ConvolutionsConfig, norms: Sequence[ChannelNorm], parameters: _Parameters, dtype: torch.dtype
) -> list[_Layer]:
    made = []
    for number, (kernel, stride, norm) in enumerate(zip(config.kernels, config.strides, norms, strict=True)):
        weight, bias, scale, shift = parameters[4 * number : 4 * number + 4]
        assert weight is not None
        flat = weight.detach().transpose(1, 2).to(dtype).reshape(weight.shape[0], -1)  # (E, K·C)
        bias = None if bias is None else bias.to(dtype)
        made.append(_Layer(flat, bias, Affine(scale, shift), kernel, stride, norm))
    return made


def _groups(waveforms: Tensor, lengths: Lengths, config: ConvolutionsConfig) -> Iterator[tuple[slice, int]]:
    """Which rows go together, and how many of their samples; rows without a single frame go nowhere."""
    if waveforms.device.type != "cpu":
        if len(waveforms) and config.num_frames(waveforms.shape[1]):
            yield slice(None), waveforms.shape[1]
        return
    for row, num_samples in enumerate(lengths.values.tolist()):
        if config.num_frames(num_samples):
            yield slice(row, row + 1), num_samples


def _rounded(
    waveforms: Tensor, groups: list[tuple[slice, int]], config: ConvolutionsConfig
) -> tuple[Tensor, list[tuple[slice, int]]]:
    """A few samples more or less of each, that make a round number of frames: a frame depends on no other, and the
    library prepares its products for some sizes instead of anew for each utterance."""
    wanted = []
    for rows, num_samples in groups:
        num_frames = -(-config.num_frames(num_samples) // _ROUND) * _ROUND
        wanted.append((rows, samples_before(num_frames, config.kernels, config.strides)))
    longest = max((count for _, count in wanted), default=0)
    return F.pad(waveforms, (0, max(0, longest - waveforms.shape[1]))), wanted


def _is_real(lengths: Lengths, config: ConvolutionsConfig, number: int, z: Tensor) -> Tensor | None:
    """(R, T, 1) where frames behind this layer are real; None where all are, or where nothing depends on it."""
    goes_alone = z.device.type == "cpu" and not torch.compiler.is_compiling()
    if goes_alone or number > 0 or config.norm == "layer":
        return None
    is_real: Tensor = lengths.after(config.kernels[:1], config.strides[:1]).mask(z.shape[1])
    return is_real[:, :, None]
