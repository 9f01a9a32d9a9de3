"""What `sonant prepare` can be told: sources, thresholds, severities, splits, engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sonant.base.errors import ConfigError
from sonant.base.names import suggestion
from sonant.corpus.demo.plan import DemoConfig
from sonant.corpus.preparation.rules import RULES, Severity
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.splits import SplitConfig


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Where ordinary ends. An utterance beyond these is found; what follows is its rule's severity."""

    min_seconds: float = 0.1
    max_seconds: float = 300.0  # longer stretches fit no batch: cut them with times in the table
    end_tolerance_seconds: float = 0.05  # tables round; an end beyond the recording by less is moved to its end
    silence_db: float = -75.0  # level under which nothing is heard; speech of quiet microphones was seen at -67
    clipped_share: float = 0.01  # of samples at full scale
    max_characters_per_second: float = 40.0  # fast speech has about 25
    min_characters_per_second: float = 0.2
    alphabet: str = ""  # characters that texts may have, beside the space; empty: any
    rare_character_count: int = 3  # a character in fewer utterances of the whole corpus cannot be learnt
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
    pack: bool = False  # copy the utterances into the corpus, so that it stands without its sources
    share_speakers: bool = False  # one speaker name in two sources is one person
    engine: Literal["local", "ray"] = "local"
    workers: int = 0  # processes that decode; 0: as many as cores
    demo: DemoConfig = field(default_factory=DemoConfig)  # what is spoken where the source is `demo`

    def __post_init__(self) -> None:
        for name, severity in self.severities.items():
            if name not in RULES:
                raise ConfigError(f"severities.{name}", "there is no such rule.", suggestion(name, RULES))
            if RULES[name].is_fixed and severity != "error":
                problem = f"this is always an error: {RULES[name].says[0].lower()}{RULES[name].says[1:]}"
                raise ConfigError(f"severities.{name}", problem, "Leave such utterances out with --skip-invalid.")
        if self.demo != DemoConfig() and self.source.format != "demo":
            raise ConfigError("demo", "only the demo corpus is spoken to order.", "Give --from demo as well.")
        if self.workers < 0:
            raise ConfigError("workers", f"{self.workers} was found.", "Give a number of processes, or 0.")
