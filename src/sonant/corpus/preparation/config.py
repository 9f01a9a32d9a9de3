"""What `sonant prepare` can be told: sources, thresholds, severities, splits, engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sonant.base.errors import ConfigError
from sonant.base.names import suggestion
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.splits import SplitConfig

Severity = Literal["error", "warning", "off"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Where ordinary ends. An utterance beyond these is found; what follows is its rule's severity."""

    min_seconds: float = 0.1
    max_seconds: float = 300.0  # longer stretches fit no batch: cut them with times in the table
    end_tolerance_seconds: float = 0.05  # tables round; an end beyond the recording by less is moved to its end
    silence_db: float = -60.0  # level below full scale under which nothing is heard
    clipped_share: float = 0.01  # of samples at full scale
    max_characters_per_second: float = 40.0  # fast speech has about 25
    min_characters_per_second: float = 0.2
    alphabet: str = ""  # characters that texts may have, beside the space; empty: any
    rare_character_count: int = 3  # a character seen less often in the whole corpus cannot be learnt
    surprise_share: float = 0.05  # a sample rate or channel count rarer than this is told

    def __post_init__(self) -> None:
        if not 0 <= self.min_seconds < self.max_seconds:
            found = f"min_seconds {self.min_seconds:g} is not below max_seconds {self.max_seconds:g}."
            raise ConfigError("limits", found, "Give limits with 0 <= min_seconds < max_seconds.")


@dataclass(frozen=True, kw_only=True)
class PrepareConfig:
    """The defaults take a folder as it is, check everything, and stop at the first faulty corpus."""

    source: SourceOptions = field(default_factory=SourceOptions)
    limits: Limits = field(default_factory=Limits)
    severities: dict[str, Severity] = field(default_factory=dict)  # rule -> what its findings mean here
    splits: SplitConfig = field(default_factory=SplitConfig)
    skip_invalid: bool = False  # keep the good, list the rest in rejected.csv
    share_speakers: bool = False  # one speaker name in two sources is one person
    engine: Literal["local", "ray"] = "local"
    workers: int = 0  # processes that decode; 0: as many as cores
    hours: float = 0.5  # of the demo corpus
    seed: int = 0  # of the demo corpus

    def __post_init__(self) -> None:
        from sonant.corpus.preparation.rules import RULES  # the rules read the limits above

        for name in self.severities:
            if name not in RULES:
                raise ConfigError(f"severities.{name}", "there is no such rule.", suggestion(name, RULES))
