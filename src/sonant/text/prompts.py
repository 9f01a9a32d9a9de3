"""What stands around a text that a decoder writes: what it begins behind, what ends it, and what it may never write.

Whisper begins behind <|startoftranscript|><|en|><|transcribe|><|notimestamps|>, Moonshine behind <s>.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sonant.base.errors import ConfigError
from sonant.base.names import suggestion
from sonant.text.coding import Tokenizer

_START, _NO_TIMES = "<|startoftranscript|>", "<|notimestamps|>"
_SOME_LANGUAGE = "<|en|>"  # whoever knows any knows this one


@dataclass(frozen=True, kw_only=True)
class PromptConfig:
    """Of models that know several languages and tasks; of all others neither may be set."""

    language: str = ""  # its code: en, de, zh, …; empty: English
    task: Literal["transcribe", "translate"] = "transcribe"


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Ids of symbols."""

    ids: tuple[int, ...]
    end: int
    never: tuple[int, ...] = ()
    never_first: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Prompt:
        """From what `as_dict` gave, by way of JSON."""
        lists = {name: tuple(values[name]) for name in ("ids", "never", "never_first")}
        return cls(end=int(values["end"]), **lists)


def prompt_for(
    tokenizer: Tokenizer, config: PromptConfig, start: int, end: int, generation: Mapping[str, Any]
) -> Prompt:
    """`start` and `end` are those of the model; `generation` is what its generation_config.json says."""
    ids, size = tokenizer.vocabulary.ids, tokenizer.size
    chosen = [start]
    if _START in ids and _SOME_LANGUAGE in ids:
        language = f"<|{config.language or 'en'}|>"
        if language not in ids:
            raise ConfigError("prompt.language", f"'{config.language}' is not known.", _known_languages(ids, language))
        chosen += [ids[language], ids[f"<|{config.task}|>"]]
    elif config != PromptConfig():
        problem = "the model knows a single language and task."
        raise ConfigError("prompt", problem, "Leave prompt.language and prompt.task out.")
    never = {id for id in generation.get("suppress_tokens") or () if 0 <= id < size}
    if _START in ids and _NO_TIMES in ids:
        chosen.append(ids[_NO_TIMES])
        never |= set(range(ids[_NO_TIMES] + 1, size))  # times
    first = {id for id in generation.get("begin_suppress_tokens") or () if 0 <= id < size}
    return Prompt(ids=tuple(chosen), end=end, never=tuple(sorted(never)), never_first=tuple(sorted(first)))


def _known_languages(ids: Mapping[str, int], wanted: str) -> str:
    codes = [symbol[2:-2] for symbol in ids if symbol.startswith("<|") and symbol.endswith("|>") and len(symbol) <= 7]
    return suggestion(wanted[2:-2], codes) + " Languages go by their codes, e.g. de."
