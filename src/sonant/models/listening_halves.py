"""Recognisers on the listening half of Moonshine and Whisper: their encoder, with a head for CTC in place of a decoder.

Shapes: B utterances, N samples, S frames as heard, D width, T frames of the scores, V symbols.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sonant.base.errors import SonantError
from sonant.base.lengths import Lengths
from sonant.layers.dropout import Dropout
from sonant.layers.linear import Linear
from sonant.models.listening import FAMILIES, MoonshineHearing, WhisperHearing, whisper_front_end
from sonant.models.recognizer import Between, Heard, Hidden, Scores, scored
from sonant.models.speech_parts import quietly, with_own_parts

__all__ = ["FAMILIES", "MoonshineCtc", "WhisperCtc", "load_half", "new_half"]


class _ListeningHalf(nn.Module):
    """What both have in common; `encoder` bears the names that it has below `model.` in their own checkpoints."""

    def __init__(self, encoder: Any, width: int, vocabulary_size: int, final_dropout: float) -> None:
        super().__init__()
        with_own_parts(encoder)
        self.config, self.encoder = encoder.config, encoder
        self.dropout = Dropout(final_dropout)
        self.lm_head = Linear(width, vocabulary_size)
        self.hidden_width = width

    def gradient_checkpointing_enable(self) -> None:
        self.encoder.gradient_checkpointing_enable()

    def forward(
        self, waveforms: Tensor, lengths: Lengths, between: Between | None = None, heard: Heard | None = None
    ) -> Scores:
        """Maps (B, N)."""
        return scored(self, waveforms, lengths, between, heard)

    def _scored(self, x: Tensor, lengths: Lengths) -> Scores:
        return Scores(self.lm_head(self.dropout(x)), lengths)


class MoonshineCtc(MoonshineHearing, _ListeningHalf):
    def score(self, heard: Heard, hidden: Hidden | None = None) -> Scores:
        return self._scored(self.encode(heard, hidden), heard.lengths)


class WhisperCtc(WhisperHearing, _ListeningHalf):
    def __init__(self, encoder: Any, width: int, vocabulary_size: int, final_dropout: float) -> None:
        super().__init__(encoder, width, vocabulary_size, final_dropout)
        self.front_end = whisper_front_end(self.config)

    def score(self, heard: Heard, hidden: Hidden | None = None) -> Scores:
        assert heard.scored is not None
        return self._scored(self.encode(heard, hidden)[:, : heard.scored.longest], heard.scored)


def new_half(config: Any, vocabulary_size: int, final_dropout: float) -> nn.Module:
    """One with weights as chance has them."""
    if config.model_type == "moonshine":
        from transformers.models.moonshine.modeling_moonshine import MoonshineEncoder

        return MoonshineCtc(MoonshineEncoder(config), config.hidden_size, vocabulary_size, final_dropout)
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    return WhisperCtc(WhisperEncoder(config), config.d_model, vocabulary_size, final_dropout)


def load_half(folder: str, config: Any, vocabulary_size: int, final_dropout: float) -> tuple[nn.Module, list[str]]:
    """One with the encoder of a folder, and the weights that the folder did not have; without a folder, by chance."""
    from transformers import AutoModel

    model = new_half(config, vocabulary_size, final_dropout)
    if not folder:
        return model, []
    try:
        with quietly():
            whole, told = AutoModel.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    except (OSError, ValueError, RuntimeError) as error:
        problem = f"it cannot be loaded: {str(error).splitlines()[0]}"
        raise SonantError(folder, problem, "Look at its config.json and its weights.") from error
    missing = sorted(name for name in told["missing_keys"] if "encoder." in name)
    if missing:
        raise SonantError(folder, f"weights of the encoder are missing: {missing[0]} …", "Name a whole checkpoint.")
    encoder: Any = model.encoder
    encoder.load_state_dict(whole.encoder.state_dict())
    return model, ["lm_head.weight", "lm_head.bias"]
