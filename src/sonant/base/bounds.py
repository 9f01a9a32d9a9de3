"""Bounds written beside the field that they hold for, and checked in one place for every config.

width: Annotated[int, Within(1, 100)] = 30                       # a number
kilobits: Annotated[Range, Within(6, 320)] = (8.0, 48.0)         # a range: both ends, in order
factors: Annotated[tuple[float, ...], Within(0.25, 4)] = (0.9,)  # a list: each of at least one
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from sonant.base.errors import ConfigError

Range = tuple[float, float]
WholeRange = tuple[int, int]


@dataclass(frozen=True)
class Within:
    """Both bounds are allowed themselves; NaN never is."""

    low: float
    high: float

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high


def check_fields(config: Any) -> None:
    """For `__post_init__`: refuses, by name, the first field outside its bounds; None and text are left alone."""
    for field, (within, is_range) in _bounds(config.__class__).items():
        value = getattr(config, field)
        if not isinstance(value, str | None):
            _check(field, value if isinstance(value, tuple) else (value,), within, is_range)


@cache
def _bounds(config: Any) -> dict[str, tuple[Within, bool]]:
    """The bounds of each field that has some, and whether the field is a range of two ends."""
    found = {}
    for field, hint in get_type_hints(config, include_extras=True).items():
        for note in getattr(hint, "__metadata__", ()):
            if isinstance(note, Within):
                found[field] = (note, _is_range(get_args(hint)[0]))
    return found


def _is_range(hint: Any) -> bool:
    return get_origin(hint) is tuple and Ellipsis not in get_args(hint)


def _check(field: str, numbers: tuple[float, ...], within: Within, is_range: bool) -> None:
    bounds = f"{within.low:g} and {within.high:g}"
    if not numbers:
        raise ConfigError(field, "the list is empty.", f"Write at least one number between {bounds}.")
    for number in numbers:
        if number not in within:
            raise ConfigError(field, f"{number:g} is not between {bounds}.", "Choose a number within these bounds.")
    if is_range and numbers[0] > numbers[-1]:
        problem = f"the range begins with {numbers[0]:g} and ends with {numbers[-1]:g}."
        raise ConfigError(field, problem, "Write the smaller number first.")
