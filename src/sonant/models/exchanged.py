"""What both kinds of borrowed networks, of text and of speech, have exchanged for something faster."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from sonant.layers.dropout import dropout


class FasterDropout(nn.Dropout):
    """One of torch's that has become one of ours; some layers look up its `p`."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p) if self.training else x


def choose_attention(network: nn.Module, name: str, attend: Any) -> None:
    """From now on the network attends by this function, which takes the masks that torch's own takes."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    AttentionInterface.register(name, attend)
    AttentionMaskInterface.register(name, sdpa_mask)
    network.set_attn_implementation(name)  # type: ignore[operator]
