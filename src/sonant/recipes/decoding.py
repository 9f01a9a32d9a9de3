"""Which decoding is asked for: the bundle's own, greedy, or a search with other settings than the bundle's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from sonant.base import config as configs
from sonant.base.bounds import Within, check_fields
from sonant.base.conversion import convert
from sonant.base.document import Document
from sonant.base.errors import UsageError
from sonant.base.overrides import Given, with_overrides
from sonant.checkpoints.bundle import Bundle
from sonant.decoding.decoder import DecodingConfig, GreedyConfig, SearchConfig
from sonant.inference.decoding import saved_decoding
from sonant.recipes.catalogue import absolute

_HOT = 4.0  # nats that a hot word is worth
_PLACES = {"ngram", "rescorer", "lexicon"}  # keys whose values are files


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the caller of an evaluation wants of decoding; nothing: what the bundle says."""

    settings: Sequence[str | Given] = ()  # of a search, on top of the bundle's
    is_greedy: bool = False
    num_best: Annotated[int, Within(1, 1000)] = 1  # answers of which the best is measured too
    tune: str | None = None  # the split to choose weights on
    save: bool = False  # what was chosen, into the bundle

    def __post_init__(self) -> None:
        check_fields(self)
        if self.tune and self.is_greedy:
            raise UsageError("--greedy", "it has no weights to choose.", "Leave it or --tune out.")
        if self.save and not (self.settings or self.is_greedy or self.tune):
            problem = "nothing else than what the bundle says was asked for."
            raise UsageError("--save-decoding", problem, "Give --tune SPLIT, or options of a search, or --greedy.")

    @property
    def is_anything(self) -> bool:
        return bool(self.settings or self.is_greedy or self.tune or self.save or self.num_best > 1)


def asked_decoding(bundle: Bundle, settings: Sequence[str | Given] = (), *, is_greedy: bool = False) -> DecodingConfig:
    """The bundle's, with the settings of a search on top; places that are given are those of the caller."""
    if is_greedy:
        if settings:
            first = settings[0]
            option = first.option if isinstance(first, Given) else f"--set {first}"
            raise UsageError("--greedy", f"it searches nothing, and {option} is about a search.", "Leave one out.")
        return GreedyConfig()
    kept = saved_decoding(bundle)
    if not settings:
        return kept
    base = kept if isinstance(kept, SearchConfig) else SearchConfig()
    document = Document(configs.to_dict(base), bundle.path("bundle.json"))
    return convert(SearchConfig, with_overrides(document, [_placed(one) for one in settings]))


def hot(words: Sequence[str]) -> dict[str, float]:
    """Words that are expected, and what each is worth."""
    return dict.fromkeys(words, _HOT)


def _placed(setting: str | Given) -> str | Given:
    """A file that is named is one of this folder, not of the bundle."""
    if isinstance(setting, Given):
        is_place = setting.key in _PLACES and setting.value
        return Given(setting.key, absolute(setting.value), setting.option) if is_place else setting
    key, has_value, value = setting.partition("=")
    return f"{key}={absolute(value.strip())}" if has_value and key.strip() in _PLACES and value.strip() else setting
