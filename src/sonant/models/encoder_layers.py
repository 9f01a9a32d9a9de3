"""The layers of borrowed speech encoders, gone through from any one to any other: frozen ones need run only once.

Shapes: B utterances, T frames as projected, D width, U frames that layers see: as many, but in SEW's every second.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from sonant.base.lengths import Count, Lengths
from sonant.layers.layer_drop import is_dropped
from sonant.models.recognizer import Hidden
from sonant.models.speech_parts import tell_real

_CONFORMERS = ("wav2vec2-conformer", "wav2vec2-bert")
_RATES = (  # as the families call what is drawn on the way through their layers
    "hidden_dropout",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "conformer_conv_dropout",
    "feat_proj_dropout",
    "layerdrop",
    "encoder_layerdrop",
)


def drawn(config: Any) -> str:
    """What is drawn anew at each pass through the layers while they learn, e.g. 'layerdrop'; empty: nothing."""
    return next((name for name in _RATES if getattr(config, name, 0)), "")


def num_inside(config: Any, num_frames: Count) -> Count:
    """The frames that layers see, of so many projected ones."""
    return num_frames // config.squeeze_factor if config.model_type == "sew" else num_frames


def norms_behind(config: Any) -> bool:
    """Whether the encoder's norm follows its layers; else it stands before them, or there is none."""
    if config.model_type in (*_CONFORMERS, "sew"):
        return bool(config.model_type == "wav2vec2-conformer")
    return bool(getattr(config, "do_stable_layer_norm", False))


def entering(encoder: Any, x: Tensor, lengths: Lengths) -> Tensor:
    """Maps projected frames (B, T, D), zero on padding, to what the first layer is given (B, U, D)."""
    kind = encoder.config.model_type
    tell_real(encoder, _real(x, lengths))
    if kind == "sew":
        x = _squeezed(encoder, x)
    elif kind not in _CONFORMERS:
        x = x + encoder.pos_conv_embed(x)
    has_norm = hasattr(encoder, "layer_norm") and not norms_behind(encoder.config)
    entered: Tensor = encoder.dropout(encoder.layer_norm(x) if has_norm else x)
    return entered


def left_out(encoder: Any, number: int, rate: float, hidden: Hidden | None) -> bool:
    """Whether a layer rests in this step of a training, on every rank alike."""
    draw = None if hidden is None else hidden.draw
    return bool(encoder.training) and draw is not None and is_dropped(number, rate, draw)


def through(encoder: Any, x: Tensor, lengths: Lengths, first: int, last: int, hidden: Hidden | None) -> Tensor:
    """Maps (B, U, D) through the layers from `first` to before `last`."""
    is_real = _real(x, lengths)
    tell_real(encoder, is_real)
    # An utterance of no frame sees its padding, and no NaN.
    seen = None if is_real is None else Lengths(lengths.values.clamp(min=1)).mask(x.shape[1])
    given, rate = _beside(encoder, x, seen), encoder.config.layerdrop
    for number, layer in enumerate(encoder.layers[first:last], first):
        if not left_out(encoder, number, rate, hidden):
            found = layer(x, **given)
            x = found[0] if isinstance(found, tuple) else found
    return x


def leaving(encoder: Any, x: Tensor, lengths: Lengths) -> Tensor:
    """Maps what the last layer gives (B, U, D) to (B, T, D); `lengths` count T."""
    if encoder.config.model_type == "sew":
        return _stretched(encoder, x, lengths)
    left: Tensor = encoder.layer_norm(x) if norms_behind(encoder.config) else x
    return left


def _real(x: Tensor, lengths: Lengths) -> Tensor | None:
    """(B, U) booleans; None: all are, as far as looking costs nothing."""
    is_real: Tensor = lengths.mask(x.shape[1])
    return None if x.device.type == "cpu" and bool(is_real.all()) else is_real


def _beside(encoder: Any, x: Tensor, seen: Tensor | None) -> dict[str, Any]:
    """What every layer is given beside the frames."""
    from transformers.masking_utils import create_bidirectional_mask

    if encoder.config.model_type == "wavlm":
        bias = encoder.layers[0].attention.compute_bias(x.shape[1], x.shape[1])  # (H, U, U)
        return {"attention_mask": seen, "position_bias": bias.repeat(len(x), 1, 1)}
    if encoder.config.model_type not in _CONFORMERS:  # alike for all frames of an utterance, and small
        return {"attention_mask": None if seen is None else seen[:, None, None, :]}
    mask = create_bidirectional_mask(config=encoder.config, inputs_embeds=x, attention_mask=seen)
    places = None if encoder.embed_positions is None else encoder.embed_positions(x)
    given = {"attention_mask": mask, "relative_position_embeddings": places}
    return given | ({"conv_attention_mask": seen} if encoder.config.model_type == "wav2vec2-bert" else {})


def _squeezed(encoder: Any, x: Tensor) -> Tensor:
    """SEW's: one frame of two; an odd last one is heard by the positions alone."""
    factor, num_frames = encoder.config.squeeze_factor, x.shape[1]
    heard = F.pad(x.transpose(1, 2), (0, max(0, factor - num_frames)))  # (B, D, T): one pair at least
    pooled, positions = encoder.pool(heard), encoder.pos_conv_embed(heard)
    squeezed: Tensor = (pooled + positions[..., : pooled.shape[2]]).transpose(1, 2)
    return squeezed


def _stretched(encoder: Any, x: Tensor, lengths: Lengths) -> Tensor:
    factor, num_frames = encoder.config.squeeze_factor, lengths.longest
    x = encoder.upsample(x)  # (B, 2·U, D)
    x = F.pad(x, (0, 0, 0, num_frames - x.shape[1]))  # cuts what is too much
    is_real = Lengths(lengths.values // factor * factor).mask(num_frames)
    return x.masked_fill(~is_real[:, :, None], 0)
