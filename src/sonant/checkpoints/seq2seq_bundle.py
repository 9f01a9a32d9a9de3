"""The files that make a bundle of a recogniser that writes a folder of `transformers` as well.

`AutoModelForSpeechSeq2Seq` and `AutoProcessor` read config.json, generation_config.json, preprocessor_config.json and
tokenizer.json with its settings. What the folder had that a model came from is taken over as it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sonant.base import storage
from sonant.checkpoints.ctc_bundle import tokenizer_files
from sonant.text.coding import Tokenizer
from sonant.text.json_files import read_json
from sonant.text.prompts import Prompt

GENERATION = "generation_config.json"
_TAKEN_OVER = (
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "normalizer.json",
)
_OWN = ("_name_or_path", "transformers_version")
_PROCESSORS = {"moonshine": "Wav2Vec2Processor", "whisper": "WhisperProcessor"}


def generation_of(folder: str) -> dict[str, Any]:
    """How `transformers` wants texts of this folder to be generated; nothing where it says nothing.

    A note that it was derived from config.json is left out: `transformers` would derive it again, without the rest.
    """
    where = storage.join(folder, GENERATION)
    values = read_json(where) if folder and storage.exists(where) else {}
    return {name: value for name, value in values.items() if name != "_from_model_config"}


def writer_files(
    model: Any, tokenizer: Tokenizer, prompt: Prompt, generation: Mapping[str, Any], folder: str
) -> dict[str, str | bytes]:
    """All but the weights."""
    config = {name: value for name, value in model.config.to_dict().items() if name not in _OWN}
    family = config["model_type"]
    files = tokenizer_files(tokenizer)
    settings = json.loads(files["tokenizer_config.json"]) | {"processor_class": _PROCESSORS[family]}
    symbols = tokenizer.symbols
    settings |= {"bos_token": symbols[prompt.ids[0]], "eos_token": symbols[prompt.end]}
    settings.setdefault("pad_token", symbols[prompt.end])
    files["tokenizer_config.json"] = _json(settings)
    files["preprocessor_config.json"] = _json(_whisper(model) if family == "whisper" else _MOONSHINE)
    for name in _TAKEN_OVER:
        if folder and storage.exists(storage.join(folder, name)):
            files[name] = storage.read_bytes(storage.join(folder, name))
    files["config.json"] = _json(config | {"architectures": [type(model).__name__]})
    files[GENERATION] = _json(_generation(config, tokenizer, prompt, generation))
    return files


def _generation(
    config: Mapping[str, Any], tokenizer: Tokenizer, prompt: Prompt, generation: Mapping[str, Any]
) -> dict[str, Any]:
    known = {name: config.get(name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    known = {name: id for name, id in known.items() if id is not None}
    known |= {"decoder_start_token_id": prompt.ids[0], **generation}
    if "lang_to_id" in generation and len(prompt.ids) > 2:
        names = [tokenizer.symbols[id] for id in prompt.ids]
        known |= {"language": names[1], "task": names[2].strip("<|>")}
    return known


_MOONSHINE = {
    "feature_extractor_type": "Wav2Vec2FeatureExtractor",
    "processor_class": _PROCESSORS["moonshine"],
    "sampling_rate": 16000,
    "feature_size": 1,
    "padding_side": "right",
    "padding_value": 0.0,
    "do_normalize": False,
    "return_attention_mask": True,
}


def _whisper(model: Any) -> dict[str, Any]:
    shift = model.front_end.samples_per_frame
    num_samples = model.most_frames * model.samples_per_frame
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": _PROCESSORS["whisper"],
        "sampling_rate": model.sample_rate,
        "feature_size": model.config.num_mel_bins,
        "hop_length": shift,
        "n_fft": 400,
        "chunk_length": num_samples // model.sample_rate,
        "n_samples": num_samples,
        "nb_max_frames": num_samples // shift,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": False,
    }


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
