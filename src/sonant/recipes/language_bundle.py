"""The bundle of a language model: its folder is one of `transformers` as well."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor, nn

from sonant.base import config as configs
from sonant.base import storage
from sonant.batches.tokens.spans import Spans
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.checkpoints.card import Card, card_text
from sonant.checkpoints.causal_bundle import causal_config, causal_files
from sonant.evaluation.table import fingerprint_of
from sonant.models.causal_lora import merged
from sonant.recipes.language_validation import Validation
from sonant.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from sonant.recipes.language import Config


def save_bundle(
    config: Config,
    model: nn.Module,
    tokenizer: Tokenizer,
    train: Spans,
    validation: Validation,
    folder: str,
    weights: Mapping[str, Tensor],
    step: int,
    metrics: Mapping[str, float],
) -> None:
    size = validation.source.packing.block_size
    description = Description(
        task="language",
        architecture="causal",
        config=causal_config(model),
        evaluation={
            "texts": configs.to_dict(config.texts),
            "block_size": size,
            "packing": config.packing,
            "rows_per_batch": config.validation.rows_per_batch,
            "documents": configs.to_dict(config.documents),
        },
        metrics=dict(metrics),
        data={
            "training": f"{train.num_tokens:,} tokens of {len(train):,} documents ({train.file.fingerprint})",
            "validation": f"{validation.spans.num_tokens:,} tokens of {len(validation.spans):,} documents",
        },
        step=step,
    )
    files = causal_files(model, tokenizer, size, config.model.folder)
    files["README.md"] = card_text(_card(config, model), description)
    write_bundle(folder, description, merged(model, weights), files)
    if validation.rows:
        validation.write_table(fingerprint_of(storage.join(folder, "model.safetensors")))


def _card(config: Config, model: nn.Module) -> Card:
    kind = config.model.folder or config.model.architecture
    count = sum(parameter.numel() for parameter in model.parameters())
    return Card(
        title=f"A causal language model ({kind})",
        summary=f"{count / 1e6:.1f} million weights, trained on texts with Sonant.",
        usage={
            "Text that follows a prompt": 'sonant generate bundle --prompt "It was"',
            "Scores of texts, for choosing among what a recogniser may have heard": _SCORES,
            "With transformers": _TRANSFORMERS,
        },
        pipeline="text-generation",
        library="transformers",
        tags=(config.model.architecture,) if not config.model.folder else (),
        datasets=[os.path.basename(place.rstrip("/")) for place in config.texts.train],
        base=config.model.folder,
        settings=configs.differences(config),
        limits="It has learnt which texts are likely, not which are true, and repeats what its texts hold.",
    )


_SCORES = """\
import sonant
model = sonant.load("bundle")
model.score(["recognise speech", "wreck a nice beach"])"""
_TRANSFORMERS = """\
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("bundle")
model = AutoModelForCausalLM.from_pretrained("bundle")"""
