"""What recipes for speech learn from: corpora, which split of each, and how long utterances may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError
from sonant.batches.bucketing import PlanConfig
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.batches.source import CorpusSource
from sonant.corpus.manifest import Corpus, open_corpus


@dataclass(frozen=True, kw_only=True)
class CorporaConfig:
    train: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()  # empty: the same corpora
    train_split: str = "train"
    validation_split: str = "dev"
    min_seconds: Annotated[float, Within(0, 1e5)] = 0.5  # shorter utterances are left out
    max_seconds: Annotated[float, Within(0, 1e5)] = 1e5  # longer ones too

    def __post_init__(self) -> None:
        check_fields(self)
        if self.max_seconds <= self.min_seconds:
            problem = f"{self.max_seconds:g} s is no more than min_seconds ({self.min_seconds:g} s)."
            raise ConfigError("max_seconds", problem, "Raise it.")


def check_given(config: CorporaConfig) -> None:
    """Whether there is anything to learn from."""
    if not config.train:
        problem = "nothing is given to learn from."
        raise ConfigError("corpora.train", problem, "Name corpora behind the recipe: sonant train RECIPE CORPUS …")


def training_corpora(config: CorporaConfig) -> list[Corpus]:
    return [_fitting(open_corpus(place).split(config.train_split), config) for place in config.train]


def validation_corpora(config: CorporaConfig) -> list[Corpus]:
    places = config.validation or config.train
    return [_fitting(open_corpus(place).split(config.validation_split), config) for place in places]


def measured_corpora(config: CorporaConfig, data: Sequence[str], split: str | None) -> tuple[list[Corpus], str]:
    """What a bundle is measured on, and the name of its split: without data, what its training validated with."""
    if data:
        # Somebody's own data is measured whole, however long its utterances are.
        config = replace(config, validation=tuple(data), min_seconds=0.0, max_seconds=1e5)
    config = replace(config, validation_split=split or config.validation_split)
    return validation_corpora(config), config.validation_split


def fingerprints(corpora: Sequence[Corpus]) -> str:
    """What says whether two evaluations are of the same data."""
    return " ".join(corpus.description.get("fingerprint", "") for corpus in corpora)


def speech_source(
    corpora: Sequence[Corpus],
    collate: Callable[..., Any],
    planning: PlanConfig,
    crop_seconds: float | None,
    *,
    seed: int = 0,
    rank: int = 0,
    world: int = 1,
) -> CorpusSource[Any, Any]:
    """Batches of corpora for one rank; `collate` lays examples side by side."""
    examples = SpeechExamples(ExampleConfig(crop_seconds=crop_seconds), seed=seed)
    return CorpusSource(corpora, examples, collate, planning, seed=seed, rank=rank, world=world)


def told(corpora: Sequence[Corpus]) -> str:
    """Corpora in words."""
    return f"{sum(map(len, corpora)):,} utterances, {sum(corpus.hours for corpus in corpora):.2f} h"


def _fitting(corpus: Corpus, config: CorporaConfig) -> Corpus:
    """The utterances of the right duration; an error where that is none of them."""
    is_fitting = (corpus.seconds >= config.min_seconds) & (corpus.seconds <= config.max_seconds)
    if not is_fitting.any():
        bounds = f"{config.min_seconds:g} to {config.max_seconds:g} s"
        problem = f"none of {len(corpus):,} utterances lasts {bounds}."
        raise ConfigError("corpora.min_seconds", f"{corpus.folder}: {problem}", "Widen the bounds.")
    return corpus.where(is_fitting)
