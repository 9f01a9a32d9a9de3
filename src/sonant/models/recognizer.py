"""What every recogniser that gives CTC scores promises, so that objectives and transcribers need not know which it is.

Shapes: B utterances, N samples, S frames as heard, E width of what was heard, T frames of the scores, V symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from sonant.base.lengths import Count, Lengths


@dataclass(frozen=True)
class Heard:
    """What the front end makes of waveforms, or it and the first layers: all of it that is frozen, and that nothing is
    drawn in, need run only once."""

    frames: Tensor  # (B, S, E), zero on padding
    lengths: Lengths
    scored: Lengths | None = None  # frames that have scores of worth; None: all that are heard
    num_layers: int | None = None  # that it has gone through; None: the front end alone


@dataclass(frozen=True)
class Hidden:
    """What is hidden from a recogniser while it learns: places of what was heard, bands of all its places, layers."""

    frames: Tensor | None = None  # (B, S) booleans
    bands: Tensor | None = None  # (B, `hidden_width`) booleans
    draw: int | None = None  # which layers are left out follows from it; None: none is


@dataclass(frozen=True)
class Scores:
    """What stands on padding means nothing."""

    logits: Tensor  # (B, T, V)
    lengths: Lengths

    @property
    def log_probs(self) -> Tensor:
        """(B, T, V) in float32."""
        return self.logits.float().log_softmax(dim=-1)


# What happens between hearing and scoring: views are laid one behind the other, parts of them hidden.
Between = Callable[[Heard], tuple[Heard, Hidden | None]]


class Recognizer(Protocol):
    """A module that scores symbols for each frame."""

    @property
    def sample_rate(self) -> int: ...

    @property
    def samples_per_frame(self) -> int:
        """From one frame of the scores to the next."""
        ...

    @property
    def hidden_width(self) -> int:
        """The bands that can be hidden."""
        ...

    @property
    def num_layers(self) -> int:
        """Those of the encoder, each of which gives as many frames as it is given."""
        ...

    @property
    def drawn(self) -> str:
        """What is drawn anew at each pass through the layers while they learn; empty: nothing."""
        ...

    def behind(self, num_layers: int) -> tuple[str, ...]:
        """How names begin of parameters without influence on what the first layers give."""
        ...

    def num_frames(self, num_samples: Count) -> Count:
        """The frames of the scores of so many samples: a number, an array or a tensor of them."""
        ...

    def num_heard(self, num_samples: Count) -> Count:
        """The same for what is heard."""
        ...

    def num_inside(self, num_samples: Count) -> Count:
        """The same for what a layer gives."""
        ...

    def hear(self, waveforms: Tensor, lengths: Lengths) -> Heard:
        """Maps (B, N) samples in [-1, 1]."""
        ...

    def deeper(self, heard: Heard, num_layers: int, hidden: Hidden | None = None) -> Heard:
        """Goes on from what was heard through the layers before this one."""
        ...

    def score(self, heard: Heard, hidden: Hidden | None = None) -> Scores:
        """Goes on from what was heard, however deep."""
        ...

    def gradient_checkpointing_enable(self) -> None:
        """Trades time for memory from now on."""
        ...

    def __call__(
        self, waveforms: Tensor, lengths: Lengths, between: Between | None = None, heard: Heard | None = None
    ) -> Scores:
        """Hears, unless that was done before, and scores; whatever wraps the module (shards, ranks) sees it used by
        this call alone."""
        ...


def scored(
    model: Any, waveforms: Tensor, lengths: Lengths, between: Between | None, heard: Heard | None = None
) -> Scores:
    """The forward pass of every recogniser."""
    heard = model.hear(waveforms, lengths) if heard is None else heard
    found: Scores = model.score(*((heard, None) if between is None else between(heard)))
    return found
