"""What every encoder of speech promises, so that objectives need not know which one they teach.

Shapes: B utterances, N samples, T frames, D width, E width of what was heard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from sonant.base.lengths import Count, Lengths


@dataclass(frozen=True)
class Encoded:
    """Frames; what stands on padding means nothing."""

    states: list[Tensor]  # (B, T, D) each: what enters the first layer and what leaves every one
    lengths: Lengths  # in frames
    heard: Tensor  # (B, T, E): what the front end made of each frame by itself, before anything was hidden

    @property
    def frames(self) -> Tensor:
        """(B, T, D): what the last layer gives."""
        return self.states[-1]


class Encoder(Protocol):
    """A module that makes frames of waveforms."""

    @property
    def width(self) -> int: ...

    @property
    def heard_width(self) -> int: ...

    @property
    def samples_per_frame(self) -> int:
        """From one frame to the next."""
        ...

    def num_frames(self, num_samples: Count) -> Count:
        """The frames of so many samples: a number, an array or a tensor of them."""
        ...

    def gradient_checkpointing_enable(self) -> None:
        """Trades time for memory from now on."""
        ...

    def __call__(
        self, waveforms: Tensor, lengths: Lengths, *, hidden: Tensor | None = None, draw: int | None = None
    ) -> Encoded:
        """Maps (B, N) samples in [-1, 1]; the frames that `hidden` (B, T) marks are not seen, only their place.

        `draw` belongs to the training step: what the encoder draws once for all batches of a step follows from it.
        """
        ...
