"""The convolution over neighbours: torch's own numbers forward and backward, and several times its speed backward."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sonant.layers.positional_convolution import PositionalConvolution, convolved


def as_torch_does(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    kernel, groups = weight.shape[2], weight.shape[0] // weight.shape[1]
    y = F.conv1d(x.transpose(1, 2), weight, bias, padding=kernel // 2, groups=groups)
    return y.transpose(1, 2)[:, : x.shape[1]]


@pytest.mark.parametrize("kernel", [1, 2, 3, 9, 16, 128])
@pytest.mark.parametrize("num_frames", [1, 7, 8, 40])
def test_results_and_gradients_are_those_of_torch(kernel, num_frames):
    torch.manual_seed(0)
    given = [torch.randn(size, dtype=torch.float64) for size in ((3, num_frames, 24), (24, 6, kernel), (24,))]
    wanted = torch.randn(given[0].shape, dtype=torch.float64)
    found = []
    for way in (lambda x, weight, bias: convolved(x, weight, bias, 4), as_torch_does):
        leaves = [tensor.clone().requires_grad_() for tensor in given]
        y = way(*leaves)
        found.append([y, *torch.autograd.grad(y, leaves, wanted)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_in_bf16_gradients_point_where_those_of_fp32_do():
    torch.manual_seed(0)
    layer, x = PositionalConvolution(32, 16, 4), torch.randn(2, 50, 32)
    gradients = []
    for is_short in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_short):
            y = layer(x)
        found = torch.autograd.grad(y.float().square().sum(), list(layer.parameters()))
        gradients.append(torch.cat([part.flatten() for part in found]))
    assert F.cosine_similarity(*gradients, dim=0) > 0.999
