"""Low-rank adapters (LoRA, Hu et al. 2021) in a causal language model, and their way back into its weights.

While it learns, each chosen matrix W has A and B beside it and acts as W + scale·B·A. What is kept of a training are
plain weights again, under the names that the model had: they load wherever the model loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from torch import Tensor, nn

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError

_NAME = "default"  # of an adapter, as peft calls the only one
_BASE, _A, _B = ".base_layer.", f".lora_A.{_NAME}.weight", f".lora_B.{_NAME}.weight"


@dataclass(frozen=True, kw_only=True)
class LoraConfig:
    rank: Annotated[int, Within(1, 4096)] = 8
    alpha: Annotated[float, Within(0.001, 1e5)] = 16.0  # the adapter counts alpha / rank
    dropout: Annotated[float, Within(0, 0.9)] = 0.0
    targets: tuple[str, ...] = ()  # ends of module names, e.g. q_proj; empty: every matrix but embeddings and head

    def __post_init__(self) -> None:
        check_fields(self)


def add_lora(network: Any, config: LoraConfig) -> None:
    """Puts adapters beside the matrices; only they learn from now on."""
    from peft import LoraConfig as PeftConfig
    from peft import inject_adapter_in_model

    wanted = PeftConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=list(config.targets) if config.targets else "all-linear",
        fan_in_fan_out=network.config.model_type == "gpt2",  # its matrices lie the other way round
        task_type="CAUSAL_LM",
    )
    try:
        inject_adapter_in_model(wanted, network)
    except ValueError as error:
        names = sorted({name.rpartition(".")[2] for name, module in network.named_modules() if _is_matrix(module)})
        problem = f"no matrix has a name that ends in {' or '.join(config.targets)}."
        raise ConfigError("lora.targets", problem, f"Choose from {', '.join(names)}.") from error


def _is_matrix(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim == 2 and not isinstance(module, nn.Embedding)


def merged(model: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the model without adapters that does the same; those of a model without any as they are."""
    changes = {name: _change(module, name, weights) for name, module in model.named_modules() if _has_adapter(module)}
    found: dict[str, Tensor] = {}
    for name, weight in weights.items():
        layer, is_base, end = name.partition(_BASE)
        if ".lora_" in name:
            continue
        change = changes[layer] if is_base and end == "weight" else None
        plain = f"{layer}.{end}" if is_base else name
        found[plain] = weight if change is None else (weight.float() + change).to(weight.dtype)
    return found


def _has_adapter(module: nn.Module) -> bool:
    return hasattr(module, "base_layer") and hasattr(module, "lora_A")


def _change(module: Any, name: str, weights: Mapping[str, Tensor]) -> Tensor:
    """What an adapter adds to the matrix beside it."""
    change: Tensor = module.scaling[_NAME] * (weights[name + _B].float() @ weights[name + _A].float())
    return change.t() if module.fan_in_fan_out else change
