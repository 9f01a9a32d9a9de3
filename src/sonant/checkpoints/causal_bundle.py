"""The files that make a bundle of a causal language model a folder of `transformers` as well.

`AutoModelForCausalLM.from_pretrained` and `AutoTokenizer.from_pretrained` read config.json, model.safetensors,
tokenizer.json and tokenizer_config.json; everything of ours lies beside them and does not disturb.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from torch import nn

from sonant.base import storage
from sonant.text.characters import CharacterTokenizer
from sonant.text.coding import UNKNOWN_MARK, Tokenizer
from sonant.text.subwords import DEFINITION, SubwordTokenizer

_SETTINGS, _OWN = "tokenizer_config.json", ("_name_or_path", "transformers_version")
_INHERITED = (_SETTINGS, "special_tokens_map.json", "generation_config.json", "chat_template.jinja")
_NAMES = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "blank": "pad_token"}


def causal_config(model: nn.Module) -> dict[str, Any]:
    """What a model is built from, as plain values that say nothing of where or by what it was made."""
    values: dict[str, Any] = {name: value for name, value in model.config.to_dict().items() if name not in _OWN}  # type: ignore[operator, union-attr]
    return values | {"architectures": [type(model).__name__]}


def causal_files(model: nn.Module, tokenizer: Tokenizer, block_size: int, source: str = "") -> dict[str, str | bytes]:
    """Files by name; what a folder that the model came from says of its tokenizer is kept."""
    files: dict[str, str | bytes] = {"config.json": _json(causal_config(model))}
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        files |= {name: storage.read_bytes(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}
    if isinstance(tokenizer, CharacterTokenizer):
        files[DEFINITION] = _json(_definition_of_characters(tokenizer))
    elif isinstance(tokenizer, SubwordTokenizer):
        files[DEFINITION] = _normalising(tokenizer)
    files[_SETTINGS] = _json(_settings(tokenizer, block_size))
    for name in _INHERITED if source else ():
        if storage.exists(storage.join(source, name)):
            files[name] = storage.read_bytes(storage.join(source, name))
    return files


def _settings(tokenizer: Tokenizer, block_size: int) -> dict[str, Any]:
    named = {_NAMES[kind]: symbol for kind, symbol in tokenizer.vocabulary.specials.items() if kind in _NAMES}
    shape = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": block_size}
    return shape | {"clean_up_tokenization_spaces": False} | named


def _normalising(tokenizer: SubwordTokenizer) -> str:
    """The definition, composing characters first where ours does: the one step that both have."""
    described = json.loads(tokenizer.definition)
    if "nfc" not in tokenizer.normalizer.config.steps:
        return tokenizer.definition
    composing, others = {"type": "NFC"}, described.get("normalizer")
    described["normalizer"] = {"type": "Sequence", "normalizers": [composing, others]} if others else composing
    return json.dumps(described, ensure_ascii=False, separators=(",", ":"))


def _definition_of_characters(tokenizer: CharacterTokenizer) -> dict[str, Any]:
    """A `tokenizer.json` that writes a text character by character."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    vocabulary = tokenizer.vocabulary
    unknown = vocabulary.unknown or UNKNOWN_MARK
    engine = Tokenizer(models.WordLevel(dict(vocabulary.ids), unk_token=unknown))
    engine.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    steps: list[Any] = [normalizers.NFC()] if "nfc" in tokenizer.normalizer.config.steps else []
    writes: list[Any] = [decoders.Fuse()]
    if vocabulary.word_delimiter:
        # A delimiter that stands in the text is no space, and has no symbol.
        mark = vocabulary.word_delimiter
        steps += [normalizers.Replace(mark, UNKNOWN_MARK), normalizers.Replace(" ", mark)]
        writes.insert(0, decoders.Replace(mark, " "))
    if steps:
        engine.normalizer = normalizers.Sequence(steps)
    engine.decoder = decoders.Sequence(writes)
    described: dict[str, Any] = json.loads(engine.to_str())
    return described


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
