"""What objectives of recognition do alike while somebody learns: hide parts, begin late, hear what was heard before.

Shapes: B utterances, S frames as heard, E their width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sonant.base.lengths import Lengths
from sonant.base.randomness import generator_for
from sonant.batches.batch import SpeechBatch
from sonant.batches.heard import HeardBatch
from sonant.batches.masking import MaskingConfig, hidden_frames
from sonant.layers.layer_drop import draw_of
from sonant.models.recognizer import Heard, Hidden


@dataclass(frozen=True, kw_only=True)
class HidingConfig:
    """SpecAugment: spans of frames as they are heard, and of bands; drawn for each utterance and pass."""

    frames: MaskingConfig | None = None
    bands: MaskingConfig | None = None

    def __bool__(self) -> bool:
        return self.frames is not None or self.bands is not None


def hidden_in(
    step: int, model: Any, hiding: HidingConfig, batch: SpeechBatch, heard: Heard, seed: int, num_views: int = 1
) -> Hidden | None:
    """What is drawn in a step of a training, layers that rest among it; None where nobody learns."""
    if not model.training:
        return None
    hidden = drawn_hidden(model, hiding, batch, heard, seed, num_views) if hiding else Hidden()
    return replace(hidden, draw=draw_of(seed, step))


def drawn_hidden(
    model: Any, hiding: HidingConfig, batch: SpeechBatch, heard: Heard, seed: int, num_views: int = 1
) -> Hidden:
    """What is drawn for each view and utterance; of several views one behind the other."""
    drawn = [_drawn(model, hiding, batch, heard, seed, view) for view in range(num_views)]
    device = heard.frames.device

    def joined(rows: list[np.ndarray | None]) -> Tensor | None:
        return None if rows[0] is None else torch.from_numpy(np.concatenate(rows)).to(device)  # type: ignore[arg-type]

    return Hidden(joined([frames for frames, _ in drawn]), joined([bands for _, bands in drawn]))


def known_before(batch: SpeechBatch, num_frames: Callable[[Any], Any]) -> Heard | None:
    """What a batch brings that was heard before."""
    if not isinstance(batch, HeardBatch):
        return None
    scored = Lengths(num_frames(batch.lengths.values))
    return Heard(batch.heard, batch.heard_lengths, scored, batch.num_layers)


def let_learn(model: nn.Module, begins: Mapping[str, int], step: int) -> None:
    """Lets parameters learn whose time has come; until then they have no gradients, and stay as they are."""
    for name, begin in begins.items():
        model.get_parameter(name).requires_grad_(step >= begin)


def _drawn(
    model: Any, hiding: HidingConfig, batch: SpeechBatch, heard: Heard, seed: int, view: int
) -> tuple[np.ndarray | None, np.ndarray | None]:
    lengths = heard.lengths.values.tolist()
    frames = np.zeros(heard.frames.shape[:2], bool) if hiding.frames else None
    bands = np.zeros((len(batch), model.hidden_width), bool) if hiding.bands else None
    for row, (id, number) in enumerate(zip(batch.ids, batch.passes, strict=True)):
        if frames is not None and hiding.frames:
            draw = generator_for(seed, number, id, f"frames {view}")
            frames[row, : lengths[row]] = hidden_frames(lengths[row], hiding.frames, draw)
        if bands is not None and hiding.bands:
            draw = generator_for(seed, number, id, f"bands {view}")
            bands[row] = hidden_frames(bands.shape[1], hiding.bands, draw)
    return frames, bands
