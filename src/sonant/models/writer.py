"""Recognisers that write token by token: Moonshine and Whisper whole, their encoder with their decoder.

The network is the class of `transformers`, under its names: what is trained here opens there. It hears as the
recognisers with CTC do, so that padding changes nothing. Asked with `answer`, it hands hidden states and head to that
function instead of making logits of all of them.

Shapes: B utterances, N samples, S frames as heard, L tokens, D width, V symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError, SonantError
from sonant.base.lengths import Lengths
from sonant.models import causal_parts, speech_parts
from sonant.models.borrowed import adapt_layers, config_for, set_dropouts, transformers_config
from sonant.models.causal_lora import LoraConfig
from sonant.models.exchanged import FasterDropout, choose_attention
from sonant.models.listening import FAMILIES, MoonshineHearing, WhisperHearing, whisper_front_end
from sonant.models.recognizer import Between, Heard
from sonant.models.speech_parts import quietly, with_own_parts

T = TypeVar("T")
Answer = Callable[[Tensor, nn.Linear], T]
_Chance = Annotated[float, Within(0, 0.99)]
_ATTENTION = "sonant_writing"  # what a config calls the attention below
_OWN = ("_name_or_path", "transformers_version", "architectures", "dtype")


@dataclass(frozen=True, kw_only=True)
class WriterConfig:
    """From scratch: a family and its settings; or `folder`, with the weights that lie there."""

    folder: str = ""  # of transformers, or a bundle
    family: Literal["moonshine", "whisper"] = "moonshine"  # a folder has its own
    settings: dict[str, Any] = field(default_factory=dict)  # of its config, under its names: hidden_size, …
    dropout: _Chance = 0.0
    attention_dropout: _Chance = 0.0
    activation_dropout: _Chance = 0.0
    lora: LoraConfig | None = None  # the layers' matrices get adapters, and only these learn

    def __post_init__(self) -> None:
        check_fields(self)
        if self.folder and self.settings:
            problem = "settings are those of a model from scratch, a folder has its own."
            raise ConfigError("model.settings", problem, "Leave one of the two out.")
        if self.lora and not self.folder:
            raise ConfigError("model.lora", "adapters need a model that has learnt something.", "Name its folder.")


class _Writing:
    """Mixed into a network of `transformers` that has an encoder and a decoder."""

    config: Any
    model: Any
    proj_out: nn.Linear
    hear: Callable[[Tensor, Lengths], Heard]
    encode: Callable[..., Tensor]

    @property
    def encoder(self) -> Any:
        return self.model.encoder

    @property
    def hidden_width(self) -> int:
        return int(self.config.hidden_size)

    def behind(self, num_layers: int) -> tuple[str, ...]:
        """How names begin of parameters without influence on what the first layers of the encoder give."""
        hearing = super().behind(num_layers)  # type: ignore[misc]
        return "model.decoder.", "proj_out.", *(f"model.{name}" for name in hearing)

    def forward(
        self,
        waveforms: Tensor,
        lengths: Lengths,
        tokens: Tensor,
        answer: Answer[T],
        between: Between | None = None,
        heard: Heard | None = None,
    ) -> T:
        """Maps (B, N), and tokens (B, L) that each next one is written behind, to what `answer` makes of (B, L, D)."""
        heard = self.hear(waveforms, lengths) if heard is None else heard
        encoded = self.encode(*((heard, None) if between is None else between(heard)))
        hidden, _ = self.write(tokens, encoded, heard.lengths)
        return answer(hidden, self.proj_out)

    def write(
        self, tokens: Tensor, encoded: Tensor, lengths: Lengths, memory: Any = None, *, remembers: bool = False
    ) -> tuple[Tensor, Any]:
        """Maps tokens (B, L) behind those in memory, and (B, S, D), to (B, L, D) and what is remembered."""
        if not len(tokens):
            return encoded.new_zeros(*tokens.shape, self.hidden_width), memory
        if not encoded.shape[1]:
            encoded = F.pad(encoded, (0, 0, 0, 1))
        is_real = lengths.mask(encoded.shape[1])
        encoded = encoded.masked_fill(~is_real[:, :, None], 0)
        # An utterance of no frame sees its padding, and no NaN.
        seen = Lengths(lengths.values.clamp(min=1)).mask(encoded.shape[1])
        known: dict[str, Tensor] = {"encoder_attention_mask": seen} if self.config.model_type == "moonshine" else {}
        found = self.model.decoder(
            input_ids=tokens,
            encoder_hidden_states=encoded,
            past_key_values=memory,
            use_cache=remembers,
            **known,
        )
        return found.last_hidden_state, found.past_key_values


@dataclass(frozen=True)
class Limits:
    """What a model can hear and write at once."""

    most_tokens: int  # with prompt and end
    most_seconds: float | None  # None: as much as there is


def limits_of(model: Any) -> Limits:
    if isinstance(model, WhisperHearing):
        seconds = model.most_frames * model.samples_per_frame / model.sample_rate
        return Limits(int(model.config.max_target_positions) + 1, seconds)  # type: ignore[attr-defined]
    return Limits(int(model.config.max_position_embeddings) + 1, None)


def new_model(config: WriterConfig, vocabulary_size: int, specials: Mapping[str, int | None]) -> nn.Module:
    """`specials` are the ids of bos, eos and pad of a model from scratch; a folder has its own."""
    described = config_for(config.folder, config.family, config.settings, FAMILIES)
    set_dropouts(described, config)
    if config.folder:
        if described.vocab_size < vocabulary_size:
            problem = f"the tokenizer has {vocabulary_size:,} symbols, the model {described.vocab_size:,}."
            raise ConfigError("tokenizer.folder", problem, "Use the tokenizer that the model came with.")
    else:
        described.vocab_size = vocabulary_size
        for name, id in specials.items():
            setattr(described, f"{name}_token_id", id)
        described.decoder_start_token_id = specials["bos"]
    model = _writing(_network(config.folder, described))
    if config.lora:
        adapt_layers(model, config.lora)
    return model


def build(config: Mapping[str, Any]) -> nn.Module:
    """What a bundle's config describes."""
    settings = dict(config["settings"])
    return _writing(_network("", transformers_config(settings.pop("model_type"), settings)))


def description(model: Any) -> dict[str, Any]:
    """What `build` makes the model from again."""
    return {"settings": {name: value for name, value in model.config.to_dict().items() if name not in _OWN}}


def _network(folder: str, described: Any) -> Any:
    """Hugging Face's network with the weights of a folder, or with those of chance."""
    from transformers import AutoModelForSpeechSeq2Seq

    try:
        if not folder:
            return AutoModelForSpeechSeq2Seq.from_config(described)
        with quietly():
            network, told = AutoModelForSpeechSeq2Seq.from_pretrained(
                folder, config=described, dtype=torch.float32, output_loading_info=True
            )
    except (OSError, ValueError, RuntimeError) as error:
        problem = f"it cannot be built: {str(error).splitlines()[0]}"
        raise SonantError(folder or "model.settings", problem, "Look at its settings and its weights.") from error
    if told["missing_keys"]:
        missing = sorted(told["missing_keys"])
        problem = f"{len(missing)} weights are missing: {', '.join(missing[:3])} …"
        raise SonantError(folder, problem, "Name a folder with encoder and decoder.")
    return network


def _writing(network: Any) -> nn.Module:
    """The same network, able to hear and to write; its weights and names do not change."""
    kind = type(network)
    with_own_parts(network.model.encoder)
    for part in network.model.decoder.modules():
        if type(part) is nn.Dropout:
            part.__class__ = FasterDropout
    choose_attention(network, _ATTENTION, _attend)
    is_whisper = network.config.model_type == "whisper"
    hearing = WhisperHearing if is_whisper else MoonshineHearing
    network.__class__ = type(kind.__name__, (_Writing, hearing, kind), {"__module__": kind.__module__})
    if is_whisper:
        network.front_end = whisper_front_end(network.config)
    made: nn.Module = network
    return made


def _attend(module: Any, query: Tensor, key: Tensor, value: Tensor, *masks: Any, **others: Any) -> tuple[Tensor, None]:
    """Looks back where it must, else everywhere. Turned by positions, queries may come in another precision."""
    attend = (causal_parts if getattr(module, "is_causal", False) else speech_parts).attend
    found: tuple[Tensor, None] = attend(module, query.to(value.dtype), key.to(value.dtype), value, *masks, **others)
    return found
