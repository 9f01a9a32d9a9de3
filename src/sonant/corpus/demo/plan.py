"""Who says what, and how: an endless list of performances, each a function of (seed, position)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields

import numpy as np

from sonant.base.errors import ConfigError
from sonant.base.randomness import generator_for, stable_hash
from sonant.corpus.demo.grammar import draw_sentence, split_of
from sonant.corpus.demo.synthesizer import Request
from sonant.corpus.demo.voices import ACCENTS, assign_voices

_RATES = ((150, 195), (120, 135), (100, 112), (82, 92))  # words a minute, by degree of slowness
_RANGES = ((45, 65), (24, 30), (10, 14), (0, 0))  # of pitch, by degree of monotony


@dataclass(frozen=True, kw_only=True)
class DemoConfig:
    """The defaults give about 800 utterances of 73 words, three of four without any symptom."""

    hours: float = 0.5
    seed: int = 0
    symptom_share: float = 0.25  # of utterances that are slow, flat, halting, hoarse, whispered or distorted
    shares: dict[str, float] = field(default_factory=lambda: {"train": 0.7, "dev": 0.1, "test": 0.2})

    def __post_init__(self) -> None:
        if not 0 < self.hours <= 100:
            raise ConfigError("hours", f"{self.hours:g} hours cannot be spoken.", "Give a number above 0, up to 100.")
        if not 0 <= self.symptom_share <= 1:
            raise ConfigError("symptom_share", f"{self.symptom_share:g} is not a share.", "Give a number from 0 to 1.")
        if not self.shares or min(self.shares.values()) <= 0:
            raise ConfigError("shares", "every split needs a share above 0.", "Give shares such as train: 0.7.")


@dataclass(frozen=True, kw_only=True)
class Symptoms:
    """Degrees from 0, none, to 3, severe."""

    slow: int = 0
    flat: int = 0  # monotony of pitch
    halting: int = 0  # silences between words
    hoarse: int = 0
    whispered: int = 0  # 0 or 1
    distorted: int = 0

    def labels(self) -> dict[str, int]:
        """The degrees, and the severity of the gravest."""
        degrees = asdict(self)
        return degrees | {"severity": max(*(degrees[name] for name in degrees if name != "whispered"), 0)}


@dataclass(frozen=True, kw_only=True)
class Performance:
    """One utterance before it is spoken."""

    position: int
    split: str
    variant: str
    accent: str
    request: Request
    symptoms: Symptoms

    @property
    def id(self) -> str:
        return f"demo-{self.position:06d}"


def performances(config: DemoConfig) -> Iterator[Performance]:
    """The corpus without end; no sentence comes twice while there are fresh ones, and none in two splits."""
    voices = assign_voices(config.shares, config.seed)
    said: set[str] = set()
    position = 0
    while True:
        generator = generator_for(config.seed, 0, str(position), "demo")
        split = _weighted(config.shares, generator)
        sentence = _fresh_sentence(split, config, said, generator)
        yield _performance(position, split, sentence, voices[split], config, generator)
        position += 1


def _weighted(shares: dict[str, float], generator: np.random.Generator) -> str:
    weights = np.array(list(shares.values()))
    return list(shares)[generator.choice(len(weights), p=weights / weights.sum())]


def _fresh_sentence(split: str, config: DemoConfig, said: set[str], generator: np.random.Generator) -> str:
    for attempt in range(100_000):
        sentence = draw_sentence(generator)
        is_stale = sentence in said and attempt < 200  # nearly all have been said: repeat one
        if not is_stale and split_of(sentence, config.shares, config.seed) == split:
            said.add(sentence)
            return sentence
    raise ConfigError("shares", f"the share of '{split}' is too small for any sentence.", "Give it more.")


def _performance(
    position: int, split: str, sentence: str, voices: tuple[str, ...], config: DemoConfig, rng: np.random.Generator
) -> Performance:
    symptoms = _symptoms(rng) if rng.random() < config.symptom_share else Symptoms()
    variant = voices[rng.integers(len(voices))]
    accent = ACCENTS[rng.integers(len(ACCENTS))]
    request = Request(
        text=sentence,
        voice=f"{accent}+{variant}",
        words_per_minute=int(rng.integers(*_RATES[symptoms.slow], endpoint=True)),
        pitch=int(rng.integers(35, 66)),
        pitch_range=int(rng.integers(*_RANGES[symptoms.flat], endpoint=True)),
        seed=stable_hash(config.seed, position, "espeak") % (1 << 31),
    )
    return Performance(
        position=position, split=split, variant=variant, accent=accent, request=request, symptoms=symptoms
    )


def _symptoms(generator: np.random.Generator) -> Symptoms:
    """One symptom or two, of any degree."""
    names = [each.name for each in fields(Symptoms)]
    chosen = generator.choice(names, size=generator.integers(1, 3), replace=False)
    return Symptoms(**{name: 1 if name == "whispered" else int(generator.integers(1, 4)) for name in chosen})
