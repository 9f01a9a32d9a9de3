"""Positions told by the neighbourhood: a wide grouped convolution whose weight is a direction and a length per tap.

Shapes: B utterances, T frames, D width, K taps, G groups.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.layers.gradients import with_zero_gradients


class PositionalConvolution(nn.Module):
    def __init__(self, width: int, kernel_size: int, num_groups: int) -> None:
        super().__init__()
        self.kernel_size, self.num_groups = kernel_size, num_groups
        weight = torch.randn(width, width // num_groups, kernel_size) * 2 / math.sqrt(kernel_size * width)
        self.direction = nn.Parameter(weight)  # (D, D/G, K)
        self.length = nn.Parameter(weight.norm(dim=(0, 1), keepdim=True))  # (1, 1, K)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (B, T, D) to what is added to it; padding must be zero."""
        if not x.shape[1]:
            return with_zero_gradients(x, self.parameters())  # torch convolves no frames at all
        weight = self.direction * (self.length / self.direction.norm(dim=(0, 1), keepdim=True))
        # Channels last, as the frames lie in memory: 3 times as fast forward on a CPU as the order of `conv1d`.
        frames = x.transpose(1, 2).unsqueeze(3)  # (B, D, T, 1)
        weight = weight.unsqueeze(3).contiguous(memory_format=torch.channels_last)  # (D, D/G, K, 1)
        y = F.conv2d(frames, weight, self.bias, padding=(self.kernel_size // 2, 0), groups=self.num_groups)
        return F.gelu(y.squeeze(3).transpose(1, 2)[:, : x.shape[1]])  # an even kernel gives one frame more
