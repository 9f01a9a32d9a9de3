"""Small recognisers that write, of each family, and speech-like utterances for them."""

from __future__ import annotations

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForSpeechSeq2Seq, WhisperFeatureExtractor

from sonant.base.lengths import Lengths
from sonant.batches.batch import SpeechBatch
from sonant.batches.collate import collate_speech
from sonant.batches.examples import SpeechExample
from sonant.models.writer import WriterConfig, new_model
from sonant.text.prompts import Prompt

SETTINGS = {
    "moonshine": {
        "hidden_size": 32,
        "intermediate_size": 48,
        "encoder_num_hidden_layers": 2,
        "encoder_num_attention_heads": 4,
        "decoder_num_hidden_layers": 2,
        "decoder_num_attention_heads": 4,
        "max_position_embeddings": 64,
    },
    "whisper": {
        "d_model": 32,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 48,
        "decoder_layers": 2,
        "decoder_attention_heads": 2,
        "decoder_ffn_dim": 48,
        "num_mel_bins": 20,
        "max_source_positions": 100,
        "max_target_positions": 64,
    },
}
FAMILIES = tuple(SETTINGS)
VOCABULARY, BOS, EOS = 30, 1, 2
PROMPTS = {"moonshine": Prompt(ids=(BOS,), end=EOS), "whisper": Prompt(ids=(BOS, 3, 4, 5), end=EOS, never=(7,))}
SAMPLES = (9000, 16000, 5123, 12345)


def config_for(family: str, **others) -> WriterConfig:
    return WriterConfig(family=family, settings=SETTINGS[family], **others)


def small_writer(family: str, spread: float = 1.0, **others):
    """With `spread` its opinions are strong, as if it had learnt something."""
    torch.manual_seed(2)
    model = new_model(config_for(family, **others), VOCABULARY, {"bos": BOS, "eos": EOS, "pad": 0}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(spread * 0.05 * torch.randn(parameter.shape))
    return model


def theirs_of(model):
    """The model of transformers with the same weights."""
    settings = {name: value for name, value in model.config.to_dict().items() if name != "model_type"}
    described = AutoConfig.for_model(model.config.model_type, **settings)
    theirs = AutoModelForSpeechSeq2Seq.from_config(described, attn_implementation="sdpa")
    theirs.load_state_dict(model.state_dict())
    return theirs.eval()


def inputs_of_theirs(family: str, waveform: torch.Tensor) -> dict[str, torch.Tensor]:
    if family == "moonshine":
        return {"input_values": waveform[None]}
    listener = WhisperFeatureExtractor(feature_size=20, chunk_length=2)
    features = listener(waveform.numpy(), sampling_rate=16000, return_tensors="pt").input_features
    return {"input_features": features}


def utterances(samples=SAMPLES, num_tokens=None) -> SpeechBatch:
    rng = np.random.default_rng(1)
    return collate_speech(
        [
            SpeechExample(
                id=f"u{number}",
                pass_number=0,
                waveform=(0.1 * rng.standard_normal(count)).astype(np.float32),
                sample_rate=16000,
                tokens=rng.integers(8, VOCABULARY, 3 + number if num_tokens is None else num_tokens),
                text="",
            )
            for number, count in enumerate(samples)
        ]
    )


def encoded(model, batch: SpeechBatch) -> tuple[torch.Tensor, Lengths]:
    with torch.no_grad():
        heard = model.hear(batch.waveforms, batch.lengths)
        return model.encode(heard), heard.lengths
