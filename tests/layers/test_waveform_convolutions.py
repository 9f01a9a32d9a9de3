"""Convolutions over waveforms equal plain ones in values and gradients, whatever the padding, device or precision."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.layers import strided_product
from sonant.layers.channel_norms import Affine, TimeNorm
from sonant.layers.waveform_convolutions import ConvolutionsConfig, WaveformConvolutions

SMALL = {"widths": (8,) * 7}
torch.backends.cudnn.allow_tf32 = False  # float32 is compared with float32
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]


def made(norm: str, **settings: object) -> WaveformConvolutions:
    torch.manual_seed(0)
    module = WaveformConvolutions(ConvolutionsConfig(norm=norm, **{**SMALL, **settings}))
    for layer in module.layers:
        for parameter in (layer.scale, layer.shift):
            if parameter is not None:
                torch.nn.init.normal_(parameter, mean=1.0, std=0.3)
    return module


def plain(module: WaveformConvolutions, waveform: torch.Tensor) -> torch.Tensor:
    """One whole utterance (N,) by the operations of torch."""
    x = waveform[None, None]
    for number, (layer, stride) in enumerate(zip(module.layers, module.config.strides, strict=True)):
        x = F.conv1d(x, layer.weight, layer.bias, stride)
        if module.config.norm == "layer":
            x = F.layer_norm(x.transpose(1, 2), (x.shape[1],), layer.scale, layer.shift).transpose(1, 2)
        elif number == 0:
            x = F.group_norm(x, x.shape[1], layer.scale, layer.shift)
        x = F.gelu(x)
    return x[0].t()


def batch(num_samples: list[int]) -> tuple[torch.Tensor, Lengths]:
    """Noise, with noise where there is padding too."""
    torch.manual_seed(1)
    return torch.randn(len(num_samples), max(num_samples)), Lengths(torch.tensor(num_samples))


@torch.no_grad()
@pytest.mark.parametrize("norm", ["layer", "group"])
@pytest.mark.parametrize("counts", [[4000, 399, 2345, 400], [400], [399], [2960 + 79], [2960 - 1, 2960]])
def test_without_gradients_values_are_those_of_plain_convolutions_of_each_utterance_alone(norm, counts):
    module = made(norm)
    waveforms, lengths = batch(counts)
    frames = module(waveforms, lengths)
    assert frames.shape[1] == module.config.num_frames(max(counts))
    for row, num_samples in enumerate(counts):
        num_frames = module.config.num_frames(num_samples)
        if num_frames:
            torch.testing.assert_close(frames[row, :num_frames], plain(module, waveforms[row, :num_samples]))
        assert frames[row, num_frames:].count_nonzero() == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("norm", ["layer", "group"])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_plain_convolutions_of_each_utterance_alone(norm, bias, device):
    module = made(norm, bias=bias).to(device)
    waveforms, lengths = batch([4000, 399, 2345, 400])
    waveforms, lengths = waveforms.to(device), lengths.to(device)
    frames = module(waveforms, lengths)
    weights = torch.randn_like(frames)
    (frames * weights).sum().backward()
    found = {name: parameter.grad.clone() for name, parameter in module.named_parameters()}
    module.zero_grad()
    total = torch.zeros((), device=device)
    for row, num_samples in enumerate(lengths.values.tolist()):
        if num_samples < 400:
            assert not frames[row].any()
            continue
        alone = plain(module, waveforms[row, :num_samples])
        torch.testing.assert_close(frames[row, : len(alone)], alone, rtol=1e-4, atol=1e-5)
        assert not frames[row, len(alone) :].any()
        total = total + (alone * weights[row, : len(alone)]).sum()
    total.backward()
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-3, atol=2e-4, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("norm", ["layer", "group"])
def test_an_exported_graph_gives_the_same_frames(norm):
    class Exported(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolutions = made(norm)

        def forward(self, waveforms: torch.Tensor, num_samples: torch.Tensor) -> torch.Tensor:
            return self.convolutions(waveforms, Lengths(num_samples))

    module = Exported().eval()
    waveforms, lengths = batch([4000, 2345])
    graph = torch.export.export(module, (waveforms, lengths.values)).module()
    torch.testing.assert_close(graph(waveforms, lengths.values), module(waveforms, lengths.values))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("norm", ["layer", "group"])
def test_in_half_precision_frames_and_gradients_stay_near(norm, device):
    module = made(norm, bias=norm == "layer").to(device)  # before a group norm a bias has no effect and no gradient
    waveforms, lengths = batch([4000, 2345])
    waveforms, lengths = waveforms.to(device), lengths.to(device)
    exact = module(waveforms, lengths)
    weights = torch.randn_like(exact)
    (exact * weights).sum().backward()
    exact_gradients = {name: parameter.grad.clone() for name, parameter in module.named_parameters()}
    module.zero_grad()
    with torch.autocast(device, torch.bfloat16):
        frames = module(waveforms, lengths)
        (frames * weights).sum().backward()
    assert frames.dtype == torch.bfloat16
    assert (frames - exact).norm() < 0.03 * exact.norm()
    for name, parameter in module.named_parameters():
        assert F.cosine_similarity(parameter.grad.flatten(), exact_gradients[name].flatten(), dim=0) > 0.99, name


def test_frozen_convolutions_need_no_memory_for_a_way_back():
    module = made("layer").requires_grad_(False)
    frames = module(*batch([4000]))
    assert not frames.requires_grad


def test_statistics_over_time_leave_padding_out_in_values_and_gradients():
    torch.manual_seed(0)
    z = torch.randn(2, 9, 3, requires_grad=True)
    scale, shift = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    is_real = Lengths(torch.tensor([9, 5])).mask()[:, :, None]
    gradient = torch.randn(2, 9, 3) * is_real
    alone = [
        F.group_norm(z[row : row + 1, :length].transpose(1, 2), 3, scale, shift) for row, length in ((0, 9), (1, 5))
    ]
    total = sum((y.transpose(1, 2)[0] * gradient[row, : y.shape[2]]).sum() for row, y in enumerate(alone))
    wanted = torch.autograd.grad(total, [z, scale, shift])
    norm, affine = TimeNorm(), Affine(scale, shift)
    with torch.no_grad():
        y, statistics = norm.forward(z, affine, is_real)
        found, of_norm = norm.backward(gradient, z, statistics, affine, is_real)
    torch.testing.assert_close(y[1, :5], alone[1][0].t().detach())
    for ours, theirs in zip([found, *of_norm], wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kernel", "stride"), [(10, 5), (3, 2), (2, 2), (4, 1), (2, 3), (5, 5), (7, 3)])
@pytest.mark.parametrize("num_frames", [10, 23, 40])
def test_any_kernel_and_stride_is_a_product_of_windows(kernel, stride, num_frames):
    torch.manual_seed(0)
    x, weight = torch.randn(2, num_frames, 4, requires_grad=True), torch.randn(6, 4, kernel, requires_grad=True)
    bias = torch.randn(6)
    wanted = F.conv1d(x.transpose(1, 2), weight, bias, stride).transpose(1, 2)
    dz = torch.randn_like(wanted)
    of_input, of_weight = torch.autograd.grad((wanted * dz).sum(), [x, weight])
    with torch.no_grad():
        flat = weight.transpose(1, 2).reshape(6, -1)
        found = strided_product.forward(x, flat, bias, kernel, stride)
        torch.testing.assert_close(found, wanted.detach(), rtol=1e-4, atol=1e-5)
        found = strided_product.of_weight(dz, x, kernel, stride)
        torch.testing.assert_close(found, of_weight, rtol=1e-4, atol=1e-4)
        found = strided_product.of_input(dz, flat, x.shape, kernel, stride)
        torch.testing.assert_close(found, of_input, rtol=1e-4, atol=1e-5)


def test_a_list_too_short_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"strides: 2 numbers were found, as many as widths \(7\) are required"):
        ConvolutionsConfig(strides=(5, 2))
