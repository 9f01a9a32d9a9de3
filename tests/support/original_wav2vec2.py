"""Small wav2vec 2.0 models of `transformers` and ours with the same weights, and batches for both."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sonant.batches.examples import SpeechExample
from sonant.batches.pretraining import Drawing, PretrainingBatch
from sonant.checkpoints.wav2vec2_weights import from_transformers, pretraining_config
from sonant.models.wav2vec2_pretraining import Wav2Vec2Pretraining, Wav2Vec2PretrainingConfig

NORMS = ["layer", "group"]
STILL = {"hidden_dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0, "layerdrop": 0.0}
_SMALL = {
    "conv_dim": [16] * 7,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "num_codevectors_per_group": 16,
    "codevector_dim": 12,
    "proj_codevector_dim": 10,
}


def original(norm: str, **settings: Any) -> Any:
    """A `Wav2Vec2ForPreTraining` of theirs, its norms as in the published base (group) or large (layer)."""
    from transformers import Wav2Vec2Config, Wav2Vec2ForPreTraining

    torch.manual_seed(0)
    shape = {"feat_extract_norm": norm, "do_stable_layer_norm": norm == "layer", "conv_bias": norm == "layer"}
    return Wav2Vec2ForPreTraining(Wav2Vec2Config(**{**_SMALL, **shape, **settings}))


def same(theirs: Any) -> Wav2Vec2Pretraining:
    """Ours with their weights; waveforms are taken as they come."""
    model = Wav2Vec2Pretraining(config_of(theirs))
    model.load_state_dict(from_transformers(theirs.state_dict(), theirs.config.num_codevector_groups))
    return model.train(theirs.training)


def config_of(theirs: Any, *, normalize: bool = False) -> Wav2Vec2PretrainingConfig:
    return pretraining_config(theirs.config.to_dict(), "config.json", normalize=normalize)


def speech(drawing: Drawing, *num_samples: int) -> PretrainingBatch:
    """Utterances u0, u1, … whose sound belongs to their id and length."""
    examples = [
        SpeechExample(
            id=f"u{number}",
            pass_number=0,
            waveform=np.random.default_rng(number).standard_normal(count).astype(np.float32),
            sample_rate=16000,
        )
        for number, count in enumerate(num_samples)
    ]
    return drawing(examples)


def negatives_for(batch: PretrainingBatch) -> Tensor:
    """(B, T, K) as theirs wants them: counted among all frames of the batch."""
    negatives = torch.zeros(*batch.hidden.shape, batch.negatives.shape[1], dtype=torch.int64)
    negatives[batch.hidden] = batch.places[batch.negatives]
    return negatives


def likeliest(logits: Tensor, tau: float, *, hard: bool) -> Tensor:
    """`gumbel_softmax` without its noise, to be put in its place."""
    assert hard
    soft = (logits / tau).softmax(dim=-1)
    return F.one_hot(soft.argmax(dim=-1), soft.shape[-1]) - soft.detach() + soft
