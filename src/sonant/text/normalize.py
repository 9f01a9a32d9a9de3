"""Texts become comparable: the steps are chosen by name, run in the order given and saved with the model.

    normalizer = Normalizer(NormalizerConfig(steps=("nfc", "lowercase", "strip_punctuation", "collapse_whitespace")))
    normalizer("Hello, World — it's me!")  # "hello world it's me"

Normalising twice is normalising once: the steps are repeated until nothing changes any more, since one step may
undo what another did (J̌ has no composed form, but its small letter ǰ has).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sonant.base.errors import ConfigError, TextError
from sonant.base.names import suggestion
from sonant.text.steps import STEPS, Step, replacing, replacing_words

INSIDE_WORDS = "'\u2019-"  # apostrophes and the hyphen
_MOST_ROUNDS = 24
_CASES = ("lowercase", "uppercase", "casefold")
_READ_BY = {"replacements": "replace", "word_replacements": "replace_words", "keep": "keep", "remove": "remove"}


@dataclass(frozen=True, kw_only=True)
class NormalizerConfig:
    """The default only makes equal what looks equal; what a model should not have to spell is dropped by choice."""

    steps: tuple[str, ...] = ("nfc", "collapse_whitespace")  # in this order; names of text/steps.py
    replacements: dict[str, str] = field(default_factory=dict)  # by `replace`: text wherever it stands
    word_replacements: dict[str, str] = field(default_factory=dict)  # by `replace_words`: whole words, {"mr": "mister"}
    keep: str = ""  # by `keep`: the only characters that stay, beside white space
    remove: str = ""  # by `remove`: characters that go without leaving a space
    inside_words: str = INSIDE_WORDS  # what `strip_punctuation` leaves standing between two letters

    def __post_init__(self) -> None:
        _check_steps(self.steps)
        for name, step in _READ_BY.items():
            if bool(getattr(self, name)) != (step in self.steps):
                raise _apart(name, step, is_set=step not in self.steps)
        if self.inside_words != INSIDE_WORDS and "strip_punctuation" not in self.steps:
            raise _apart("inside_words", "strip_punctuation", is_set=True)
        _check_table("replacements", self.replacements, replacing)
        _check_table("word_replacements", self.word_replacements, replacing_words)


@dataclass(frozen=True)
class Normalizer:
    """Takes a text through the steps of its config; two of one config are equal, and it can be pickled."""

    config: NormalizerConfig = field(default_factory=NormalizerConfig)

    @cached_property
    def _steps(self) -> list[Step]:
        return [STEPS[name](self.config) for name in self.config.steps]

    def __call__(self, text: str) -> str:
        start = text
        for _ in range(_MOST_ROUNDS):
            before = text
            for step in self._steps:
                text = step(text)
            if text == before:
                return text
        steps = ", ".join(self.config.steps)
        problem = f"the steps {steps} never come to rest: each round changes the text again."
        raise TextError(f"'{start[:40]}'", problem, "Take out the replacement that brings back what a step removes.")


def _check_steps(steps: tuple[str, ...]) -> None:
    for index, name in enumerate(steps):
        if name not in STEPS:
            raise ConfigError(f"steps.{index}", f"there is no step '{name}'.", suggestion(name, STEPS))
        if name in steps[:index]:
            raise ConfigError(f"steps.{index}", f"the step '{name}' stands there twice.", "Keep one of the two.")
    cases = [name for name in steps if name in _CASES]
    if len(cases) > 1:
        raise ConfigError("steps", f"{' and '.join(cases)} undo each other.", "Keep one of them.")


def _check_table(name: str, table: Mapping[str, str], reader: Callable[[Mapping[str, str]], Step]) -> None:
    """A replacement that is itself replaced would go on for ever, or mean something else the second time."""
    if "" in table:
        raise ConfigError(name, "an empty text cannot be replaced.", "Give the text to be replaced.")
    replace = reader(table) if table else str
    for old, new in table.items():
        if replace(new) != new:
            problem = f"'{old}' becomes '{new}', which would be replaced again by '{replace(new)}'."
            raise ConfigError(f"{name}.{old}", problem, "Write what it shall become in the end.")


def _apart(name: str, step: str, *, is_set: bool) -> ConfigError:
    if is_set:
        problem = f"without the step '{step}' it has no effect."
        return ConfigError(name, problem, f"Put '{step}' among the steps, where it shall happen.")
    return ConfigError(name, f"the step '{step}' needs it.", f"Give '{name}', or leave the step out.")
