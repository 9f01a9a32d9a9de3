"""The bundle of a recogniser that writes: what `transcribe` and `evaluate` need, and `transformers`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from sonant.base import config as configs
from sonant.base import storage
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.checkpoints.card import Card, card_text
from sonant.checkpoints.seq2seq_bundle import writer_files
from sonant.corpus.manifest import Corpus
from sonant.evaluation.table import fingerprint_of
from sonant.inference.writing import WritingConfig
from sonant.models.causal_lora import merged
from sonant.models.writer import description as writer_description
from sonant.recipes.recognition_validation import Validation
from sonant.recipes.speech import told
from sonant.text.coding import Tokenizer
from sonant.text.prompts import Prompt

if TYPE_CHECKING:
    from sonant.recipes.seq2seq import Config


def save_bundle(
    prompt: Prompt,
    decoding: WritingConfig,
    generation: Mapping[str, Any],
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
    description = Description(
        task="seq2seq",
        architecture="writer",
        config=writer_description(model),
        front_end={"kind": "waveform", "sample_rate": model.sample_rate},
        text={"prompt": prompt.as_dict()},
        decoding=configs.to_dict(decoding),
        evaluation={
            "corpora": configs.to_dict(config.corpora),
            "batch_seconds": config.validation_seconds,
            "compared": configs.to_dict(config.compared),
        },
        metrics=dict(metrics),
        data={"training": told(train)},
        step=step,
    )
    files = writer_files(model, tokenizer, prompt, generation, config.start or config.model.folder)
    files["README.md"] = card_text(_card(config, model), description)
    write_bundle(folder, description, merged(model, weights), files)
    if validation.rows:
        validation.write_table(fingerprint_of(storage.join(folder, "model.safetensors")))


def _card(config: Config, model: Any) -> Card:
    family = str(model.config.model_type)
    count = sum(parameter.numel() for parameter in model.parameters())
    return Card(
        title=f"A speech recogniser ({family}, sequence to sequence)",
        summary=f"{count / 1e6:.1f} million weights, trained on recordings and their texts with Sonant.",
        usage={
            "On the command line": "sonant transcribe bundle recording.wav",
            "In Python": _PYTHON,
            "With transformers": _TRANSFORMERS,
        },
        pipeline="automatic-speech-recognition",
        library="transformers",
        tags=(family,),
        datasets=[os.path.basename(place.rstrip("/")) for place in config.corpora.train],
        base=config.model.folder,
        settings=configs.differences(config),
        limits="It writes what sounds like the speech it has learnt from, and now and then what nobody said. "
        "Times of words are estimates.",
    )


_PYTHON = """\
import sonant
model = sonant.load("bundle")
model.transcribe("recording.wav").text"""
_TRANSFORMERS = """\
from transformers import AutoModelForSpeechSeq2Seq, AutoProcessor
processor = AutoProcessor.from_pretrained("bundle")
model = AutoModelForSpeechSeq2Seq.from_pretrained("bundle")"""
