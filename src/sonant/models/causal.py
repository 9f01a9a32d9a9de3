"""Causal language models of any architecture that `transformers` knows, from scratch or from a folder.

Legend: B rows, T tokens of a row, D width.

The weights bear Hugging Face's names, since the module is Hugging Face's own. It learns one thing more: asked with
`answer`, it hands its last hidden states and its head to that function instead of making logits of all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from sonant.base.errors import ConfigError, SonantError
from sonant.base.names import suggestion
from sonant.models.causal_lora import LoraConfig, add_lora
from sonant.models.causal_parts import with_faster_parts

T = TypeVar("T")
Dtype = Literal["fp32", "bf16", "fp16", "auto"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_PROBE_TOKENS = 5


@dataclass(frozen=True, kw_only=True)
class CausalConfig:
    """From scratch: an architecture and its settings; or `folder`, with the weights that lie there."""

    architecture: str = "gpt2"  # `model_type` of transformers: gpt2, llama, qwen3, …
    settings: dict[str, Any] = field(default_factory=dict)  # of its config, under its names: n_layer, hidden_size, …
    folder: str = ""  # a causal language model in the layout of transformers, or a bundle
    dtype: Dtype = "fp32"  # of the weights; auto: as the folder has them
    lora: LoraConfig | None = None
    trust_remote_code: bool = False  # a folder may carry code; it runs only when this is set

    def __post_init__(self) -> None:
        if self.folder and self.settings:
            problem = "settings are those of a model from scratch, a folder has its own."
            raise ConfigError("settings", problem, "Leave one of the two out.")
        if self.dtype == "auto" and not self.folder:
            raise ConfigError("dtype", "only a folder can say which one it has.", "Write fp32 or bf16.")
        if self.lora and not self.folder:
            raise ConfigError("lora", "adapters need a model that has learnt something.", "Name its folder.")


def new_model(config: CausalConfig, vocabulary_size: int, block_size: int, specials: Mapping[str, int]) -> nn.Module:
    """A model with weights as chance has them; `specials` are the ids of bos, eos and pad, as far as there are any."""
    settings = {f"{name}_token_id": specials.get(name) for name in ("bos", "eos", "pad")}
    settings |= {"vocab_size": vocabulary_size, "max_position_embeddings": block_size} | config.settings
    return build({"model_type": config.architecture} | settings | {"dtype": str(DTYPES[config.dtype]).split(".")[1]})


def load_model(config: CausalConfig, vocabulary_size: int | None = None) -> nn.Module:
    """A model with the weights of a folder; its embeddings grow where the tokenizer has more symbols."""
    from transformers import AutoModelForCausalLM

    if not os.path.exists(os.path.join(config.folder, "config.json")):
        raise SonantError(config.folder, "config.json is missing.", "Name the folder of a causal language model.")
    dtype = "auto" if config.dtype == "auto" else DTYPES[config.dtype]
    try:
        network = AutoModelForCausalLM.from_pretrained(
            config.folder, dtype=dtype, trust_remote_code=config.trust_remote_code, attn_implementation="sdpa"
        )
    except (OSError, ValueError) as error:
        problem = f"it cannot be loaded as a causal language model: {str(error).splitlines()[0]}"
        raise SonantError(config.folder, problem, "Look at its config.json and its weights.") from error
    if vocabulary_size is not None and vocabulary_size > network.get_input_embeddings().weight.shape[0]:
        network.resize_token_embeddings(vocabulary_size)
    if config.lora:
        add_lora(network, config.lora)
    return _answering(network)


def build(config: Mapping[str, Any]) -> nn.Module:
    """A model from the values of a transformers config, `model_type` among them: what bundles are opened with."""
    from transformers import AutoModelForCausalLM

    try:
        network = AutoModelForCausalLM.from_config(transformers_config(config), attn_implementation="sdpa")
    except ValueError as error:
        raise ConfigError("settings", str(error).splitlines()[0], "Correct the settings.") from error
    return _answering(network)


def transformers_config(values: Mapping[str, Any]) -> Any:
    """The config of an architecture; a setting that it does not have is refused, where transformers would keep it."""
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    given = dict(values)
    name = given.pop("model_type")
    if name not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        problem = f"transformers knows no causal language model '{name}'."
        raise ConfigError("architecture", problem, suggestion(name, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES))
    usual = AutoConfig.for_model(name)
    known = {*usual.to_dict(), *usual.attribute_map, "_name_or_path", "pad_token_id", "bos_token_id", "eos_token_id"}
    for key in given:
        if key not in known and not hasattr(usual, key):
            raise ConfigError(f"settings.{key}", f"'{name}' has no such setting.", suggestion(key, known))
    given.pop("transformers_version", None)
    try:
        return AutoConfig.for_model(name, **given)
    except (TypeError, ValueError) as error:
        raise ConfigError("settings", f"'{name}' refuses them: {error}.", "Correct the settings.") from error


def max_positions(model: nn.Module) -> int | None:
    """How many tokens the model can see at once; None: it has no end."""
    found = getattr(model.config, "max_position_embeddings", None)
    return None if found is None else int(found)


class _Answering:
    """Mixed into a network of transformers; everything else stays as it was."""

    config: Any
    training: bool

    def forward(
        self,
        tokens: Tensor | None = None,
        *,
        answer: Callable[[Tensor, nn.Linear], T] | None = None,
        documents: Tensor | None = None,
        positions: Tensor | None = None,
        **others: Any,
    ) -> T | Any:
        """Maps tokens (B, T) to what `answer` makes of hidden states (B, T, D) and head.

        `documents` (B, T) numbers what may not look at one another, `positions` (B, T) replaces counting from 0.
        Without `answer` it is the forward of transformers, whose names `others` may use.
        """
        if answer is None:
            others |= {} if tokens is None else {"input_ids": tokens}
            return super().forward(**others)  # type: ignore[misc]
        assert tokens is not None
        mask: Tensor | None = None
        if documents is not None:
            mask = (documents[:, None, :, None] == documents[:, None, None, :]).tril()  # (B, 1, T, T)
        elif positions is not None:
            mask = torch.ones_like(tokens)  # (B, T): else transformers takes positions for a hint at documents
        hidden = self.base_model(  # type: ignore[attr-defined]
            tokens, attention_mask=mask, position_ids=positions, use_cache=False
        ).last_hidden_state  # (B, T, D)
        return answer(hidden, self.get_output_embeddings())  # type: ignore[attr-defined]


def _answering(network: Any) -> nn.Module:
    """The same network, able to answer; its weights, names and class of config do not change."""
    kind = type(network)
    network.__class__ = type(kind.__name__, (_Answering, kind), {"__module__": kind.__module__})
    with_faster_parts(network)
    _check_head(network)
    made: nn.Module = network
    return made


@torch.no_grad()
def _check_head(network: Any) -> None:
    """Some networks change their logits behind the head (caps, scales): their hidden states alone do not tell them."""
    was_training = network.training
    network.eval()
    tokens = torch.arange(_PROBE_TOKENS, device=network.device)[None] % network.get_input_embeddings().weight.shape[0]
    whole = network(tokens, attention_mask=torch.ones_like(tokens)).logits
    ours = network(tokens, answer=lambda hidden, head: head(hidden))
    network.train(was_training)
    tolerance = 1e-4 if whole.dtype == torch.float32 else 2e-2
    if not torch.allclose(ours, whole, rtol=tolerance, atol=tolerance):
        problem = f"'{network.config.model_type}' changes its logits behind its head, which is not supported."
        raise ConfigError("architecture", problem, "Choose another one, e.g. gpt2, llama or qwen3.")
