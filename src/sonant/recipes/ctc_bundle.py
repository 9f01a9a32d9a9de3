"""The bundle of a recogniser: what `transcribe`, `evaluate` and `serve` need, and `transformers` where it knows it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from sonant.base import config as configs
from sonant.base import storage
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.checkpoints.card import Card, card_text
from sonant.checkpoints.ctc_bundle import adapter_files, encoder_files, tokenizer_files
from sonant.corpus.manifest import Corpus
from sonant.evaluation.table import fingerprint_of
from sonant.models.causal_lora import merged
from sonant.models.conformer import Conformer
from sonant.models.ctc import description as encoder_description
from sonant.recipes.recognition_validation import Validation
from sonant.recipes.speech import told
from sonant.text.coding import Tokenizer

if TYPE_CHECKING:
    from sonant.recipes.ctc import Config


def save_bundle(
    config: Config,
    model: nn.Module,
    tokenizer: Tokenizer,
    train: Sequence[Corpus],
    validation: Validation,
    folder: str,
    weights: Mapping[str, Tensor],
    step: int,
    metrics: Mapping[str, float],
) -> None:
    language, weights = getattr(model, "language", ""), merged(model, weights)
    files = tokenizer_files(tokenizer, language)
    if isinstance(model, Conformer):
        architecture = "conformer"
        described = configs.to_dict(model.config) | {"vocabulary_size": tokenizer.size}
    else:
        architecture, described = "ctc", encoder_description(model)
        files |= encoder_files(model, tokenizer) | adapter_files(model, weights)
    description = Description(
        task="ctc",
        architecture=architecture,
        config=described,
        front_end={"kind": "waveform", "sample_rate": model.sample_rate},
        decoding={"kind": "greedy"},
        evaluation={"corpora": configs.to_dict(config.corpora), "batch_seconds": config.validation_seconds},
        metrics=dict(metrics),
        data={"training": told(train)},
        step=step,
    )
    files["README.md"] = card_text(_card(config, model, architecture), description)
    write_bundle(folder, description, weights, files)
    if validation.rows:
        validation.write_table(fingerprint_of(storage.join(folder, "model.safetensors")))


def _card(config: Config, model: nn.Module, architecture: str) -> Card:
    network: Any = model
    family = str(architecture if isinstance(model, Conformer) else network.config.model_type)
    count = sum(parameter.numel() for parameter in model.parameters())
    is_theirs = hasattr(model, "normalizes")
    usage = {"On the command line": "sonant transcribe bundle recording.wav", "In Python": _PYTHON}
    return Card(
        title=f"A speech recogniser ({family}, CTC)",
        summary=f"{count / 1e6:.1f} million weights, trained on recordings and their texts with Sonant.",
        usage=usage | ({"With transformers": _TRANSFORMERS} if is_theirs else {}),
        pipeline="automatic-speech-recognition",
        library="transformers" if is_theirs else "sonant",
        tags=(family,),
        datasets=[os.path.basename(place.rstrip("/")) for place in config.corpora.train],
        base=getattr(config.model, "folder", ""),
        settings=configs.differences(config),
        limits="It writes what sounds like the speech it has learnt from; other voices and rooms come out worse.",
    )


_PYTHON = """\
import sonant
model = sonant.load("bundle")
model.transcribe("recording.wav").text"""
_TRANSFORMERS = """\
from transformers import AutoFeatureExtractor, AutoModelForCTC, AutoTokenizer
listener = AutoFeatureExtractor.from_pretrained("bundle")
model = AutoModelForCTC.from_pretrained("bundle")
tokenizer = AutoTokenizer.from_pretrained("bundle")"""
