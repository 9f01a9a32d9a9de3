"""The files that make a bundle of a recogniser a folder of `transformers` as well, where its architecture is theirs.

`AutoModelForCTC`, `AutoFeatureExtractor` and `AutoTokenizer` read config.json, preprocessor_config.json, vocab.json or
tokenizer.json, and tokenizer_config.json; everything of ours lies beside them and does not disturb. Where a model was
adapted to a language, its adapter lies there too, and its symbols under its name, as folders of several have them.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from sonant.base import storage
from sonant.checkpoints.tensors import packed
from sonant.models.language_adapters import file_of, of_language
from sonant.text.characters import SYMBOLS, CharacterTokenizer
from sonant.text.coding import Tokenizer

_NAMES = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "blank": "pad_token"}
_OWN = ("_name_or_path", "transformers_version")


def tokenizer_files(tokenizer: Tokenizer, language: str = "") -> dict[str, str | bytes]:
    """What `load_tokenizer` reads, and transformers too."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        files: dict[str, str | bytes] = {
            name: storage.read_bytes(os.path.join(folder, name)) for name in sorted(os.listdir(folder))
        }
    specials = tokenizer.vocabulary.specials
    settings: dict[str, Any] = {ours: specials.get(kind) for kind, ours in _NAMES.items()}
    if isinstance(tokenizer, CharacterTokenizer):
        settings |= {
            "tokenizer_class": "Wav2Vec2CTCTokenizer",
            "word_delimiter_token": tokenizer.vocabulary.word_delimiter or " ",
        }
        if language:
            settings["target_lang"] = language
            files[SYMBOLS] = _json({language: tokenizer.vocabulary.ids})
    else:
        settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    files["tokenizer_config.json"] = _json({name: value for name, value in settings.items() if value is not None})
    return files


def adapter_files(model: Any, weights: Mapping[str, Tensor]) -> dict[str, str | bytes]:
    """The adapter and the head of the language that the model was adapted to, if it was to one."""
    return {file_of(model.language): packed(of_language(weights))} if getattr(model, "language", "") else {}


def encoder_files(model: nn.Module, tokenizer: Tokenizer) -> dict[str, str | bytes]:
    """config.json and preprocessor_config.json of a network of theirs."""
    network: Any = model
    values = {name: value for name, value in network.config.to_dict().items() if name not in _OWN}
    family = values["model_type"]
    values |= {"vocab_size": tokenizer.size, "pad_token_id": tokenizer.blank_id}
    for name, id in (("bos", tokenizer.bos_id), ("eos", tokenizer.eos_id)):
        values[f"{name}_token_id"] = id
    files: dict[str, str | bytes] = {}
    if hasattr(network, "normalizes"):
        values["architectures"] = [type(model).__name__]
        files["preprocessor_config.json"] = _json(_listening(network, family))
    files["config.json"] = _json(values)
    return files


def _listening(network: Any, family: str) -> dict[str, Any]:
    if family == "wav2vec2-bert":
        return {"feature_extractor_type": "SeamlessM4TFeatureExtractor", "sampling_rate": 16000, "stride": 2}
    return {
        "feature_extractor_type": "Wav2Vec2FeatureExtractor",
        "sampling_rate": 16000,
        "feature_size": 1,
        "padding_side": "right",
        "padding_value": 0.0,
        "do_normalize": network.normalizes,
        # A group norm must not see their padding, so no mask goes with it.
        "return_attention_mask": getattr(network.config, "feat_extract_norm", "layer") == "layer",
    }


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
