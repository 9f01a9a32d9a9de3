"""The bundle of an encoder: what goes on from it, measures it again, or opens it in `transformers`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from sonant.base import config as configs
from sonant.base import storage
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.checkpoints.card import Card, card_text
from sonant.checkpoints.wav2vec2_folder import wav2vec2_files
from sonant.checkpoints.wav2vec2_weights import to_transformers
from sonant.corpus.manifest import Corpus
from sonant.evaluation.table import fingerprint_of
from sonant.recipes.pretrain_learning import ContrastiveLearning
from sonant.recipes.pretrain_validation import Validation
from sonant.recipes.speech import told

if TYPE_CHECKING:
    from sonant.recipes.pretrain import Config


def save_bundle(
    config: Config,
    train: Sequence[Corpus],
    validation: Validation,
    folder: str,
    weights: Mapping[str, Tensor],
    step: int,
    metrics: Mapping[str, float],
) -> None:
    learning = validation.measuring.learning
    encoder, is_contrastive = learning.model.encoder, isinstance(learning, ContrastiveLearning)
    description = Description(
        task="pretrain",
        architecture="wav2vec2" if is_contrastive else "best_rq",
        config=configs.to_dict(learning.model),
        front_end={"kind": "waveform", "sample_rate": 16000, "normalize": encoder.normalize},
        evaluation=configs.to_dict(validation.measuring),
        metrics=dict(metrics),
        data={"training": told(train)},
        step=step,
    )
    files = wav2vec2_files(learning.model if isinstance(learning, ContrastiveLearning) else None, encoder)
    files["README.md"] = card_text(_card(config), description)
    write_bundle(folder, description, to_transformers(weights), files)
    validation.write_table(fingerprint_of(storage.join(folder, "model.safetensors")))


def _card(config: Config) -> Card:
    return Card(
        title="A speech encoder (wav2vec 2.0)",
        summary="Pretrained on speech without labels, with Sonant. It gives a frame each 20 ms, for other tasks.",
        usage={"With transformers": _TRANSFORMERS},
        pipeline="feature-extraction",
        library="transformers",
        tags=("wav2vec2",),
        datasets=[os.path.basename(place.rstrip("/")) for place in config.corpora.train],
        base=config.start,
        settings=configs.differences(config),
        limits="It writes nothing by itself: fine-tune it. It knows the kinds of speech that it has heard.",
    )


_TRANSFORMERS = """\
from transformers import AutoFeatureExtractor, AutoModel
listener = AutoFeatureExtractor.from_pretrained("bundle")
model = AutoModel.from_pretrained("bundle")"""
