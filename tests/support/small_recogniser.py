"""A recogniser that has learnt nothing, in a bundle: it writes a lot, and the same every time."""

from __future__ import annotations

import torch

from sonant.base import config as configs
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.checkpoints.ctc_bundle import tokenizer_files
from sonant.layers.conformer import ConformerLayerConfig
from sonant.models.conformer import Conformer, ConformerConfig
from sonant.models.ctc import EncoderConfig, description, new_model
from sonant.text.normalize import NormalizerConfig
from sonant.text.tokenizer import CharactersConfig, train_tokenizer

RATE = 16000
SPOKEN = NormalizerConfig(steps=("lowercase", "strip_punctuation", "collapse_whitespace"))
TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
TINY |= {"conv_dim": (8,) * 7, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}


def write_recogniser(folder: str, kind: str) -> str:
    """Gives the folder; `kind` is conformer or wav2vec2."""
    tokenizer = train_tokenizer(["the quick brown fox jumps over a lazy dog"], CharactersConfig(normalizer=SPOKEN))
    torch.manual_seed(1)
    if kind == "conformer":
        layer = ConformerLayerConfig(width=24, hidden_width=48, num_heads=2, kernel_size=5)
        model = Conformer(ConformerConfig(layer=layer, num_layers=1, channels=4), tokenizer.size)
        config = configs.to_dict(model.config) | {"vocabulary_size": tokenizer.size}
    else:
        model, _ = new_model(EncoderConfig(settings=TINY), tokenizer.size, 0, hides_frames=False)
        config = description(model)
    with torch.no_grad():
        list(model.parameters())[-1].normal_(0, 0.1)
        list(model.parameters())[-2].mul_(20)
    described = Description(
        task="ctc",
        architecture="conformer" if kind == "conformer" else "ctc",
        config=config,
        front_end={"sample_rate": RATE},
    )
    write_bundle(folder, described, model.state_dict(), tokenizer_files(tokenizer))
    return folder
