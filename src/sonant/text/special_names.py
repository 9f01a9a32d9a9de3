"""Which symbols are special, by what other toolkits call them and by what transformers notes beside a vocabulary."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from sonant.base import storage
from sonant.text.json_files import read_json

_USUAL = {  # the commonest first
    "blank": ("<pad>", "[PAD]", "<blank>", "<blk>", "<eps>"),
    "unknown": ("<unk>", "[UNK]", "<UNK>"),
    "bos": ("<s>", "<sos>", "<bos>", "<sos/eos>"),
    "eos": ("</s>", "<eos>", "<sos/eos>"),
    "word_delimiter": ("|", "▁", "<space>"),
}
_KEYS = {
    "blank": "pad_token",
    "unknown": "unk_token",
    "bos": "bos_token",
    "eos": "eos_token",
    "word_delimiter": "word_delimiter_token",
}


def usual_specials(symbols: Container[str]) -> dict[str, str | None]:
    """The symbols that bear a usual name; a space among them needs no delimiter."""
    found = {kind: next((name for name in names if name in symbols), None) for kind, names in _USUAL.items()}
    return found | ({"word_delimiter": None} if " " in symbols else {})


def noted_specials(settings: dict[str, Any], symbols: Container[str]) -> dict[str, str | None]:
    """Those that transformers notes. Only the blank must exist: the others are often named and never used."""
    noted = {kind: _content(settings[key]) for kind, key in _KEYS.items() if settings.get(key) is not None}
    return {kind: symbol if symbol in symbols or kind == "blank" else None for kind, symbol in noted.items()}


def settings_in(folder: str) -> dict[str, Any]:
    """special_tokens_map.json and tokenizer_config.json, as far as they are there."""
    settings: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        location = storage.join(folder, name)
        if storage.exists(location):
            settings |= read_json(location)
    return settings


def added_symbols(folder: str, settings: dict[str, Any]) -> dict[str, int]:
    """Symbols that a tokenizer was given after its vocabulary, with their ids."""
    location = storage.join(folder, "added_tokens.json")
    added: dict[str, int] = read_json(location) if storage.exists(location) else {}
    noted = settings.get("added_tokens_decoder") or {}
    return added | {_content(token): int(id) for id, token in noted.items()}


def _content(token: Any) -> str:
    return str(token["content"] if isinstance(token, dict) else token)
