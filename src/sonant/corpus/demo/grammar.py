"""The sentences of the demo corpus: few words, very many sentences, so that unseen ones are never scarce."""

from __future__ import annotations

from math import prod

import numpy as np

from sonant.base.randomness import uniform_for

_NAMES = ("anna", "peter", "maria", "david", "sofia", "thomas")
_PLACES = ("table", "window", "door", "garden", "kitchen", "bridge")
_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

Slot = tuple[str, ...]
TEMPLATES: tuple[tuple[Slot, ...], ...] = (
    (
        ("put", "move", "bring", "carry", "hide"),
        ("the",),
        ("red", "green", "blue", "white", "black", "yellow"),
        ("box", "book", "cup", "lamp", "chair", "bottle"),
        ("under", "behind", "near", "beside"),
        ("the",),
        _PLACES,
    ),
    (
        _NAMES,
        ("called", "met", "saw", "helped", "paid"),
        ("the",),
        ("doctor", "teacher", "driver", "baker"),
        ("at", "before", "after"),
        _HOURS,
        ("on",),
        _DAYS,
    ),
    (
        ("it was",),
        ("cold", "warm", "windy", "rainy", "sunny"),
        ("in",),
        ("london", "paris", "madrid", "berlin"),
        ("this", "last"),
        ("week", "month", "summer", "winter", "evening"),
    ),
    (("the number is",), _DIGITS, _DIGITS, _DIGITS, _DIGITS),
)
NUM_SENTENCES = sum(prod(map(len, template)) for template in TEMPLATES)


def draw_sentence(generator: np.random.Generator) -> str:
    """One sentence; the templates are equally likely, and so are the words of a slot."""
    template = TEMPLATES[generator.integers(len(TEMPLATES))]
    return " ".join(slot[generator.integers(len(slot))] for slot in template)


def split_of(sentence: str, shares: dict[str, float], seed: int) -> str:
    """The split that a sentence belongs to, for ever."""
    place = uniform_for(seed, sentence, "split of a sentence") * sum(shares.values())
    for split, share in shares.items():
        place -= share
        if place < 0:
            return split
    return split
