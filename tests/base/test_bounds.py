from dataclasses import dataclass
from typing import Annotated

import pytest

from sonant.base.bounds import Range, Within, check_fields
from sonant.base.config import from_dict
from sonant.base.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Settings:
    width: Annotated[int, Within(1, 100)] = 30
    kilobits: Annotated[Range, Within(6, 320)] = (8.0, 48.0)
    factors: Annotated[tuple[float, ...], Within(0.25, 4)] = (1.1, 0.9)
    limit: Annotated[float | None, Within(0, 1)] = None
    free: float = -7.0

    def __post_init__(self) -> None:
        check_fields(self)


def test_both_bounds_and_what_lies_between_are_allowed():
    Settings(width=1, kilobits=(6.0, 320.0), factors=(0.25, 4.0), limit=1.0)
    Settings(width=100, kilobits=(9.0, 9.0))


@pytest.mark.parametrize(
    ("values", "field", "found"),
    [
        ({"width": 0}, "width", "0 is not between 1 and 100."),
        ({"width": 101}, "width", "101 is not between 1 and 100."),
        ({"kilobits": [8.0, 321.0]}, "kilobits", "321 is not between 6 and 320."),
        ({"kilobits": [48.0, 8.0]}, "kilobits", "the range begins with 48 and ends with 8."),
        ({"factors": [1.0, 0.1]}, "factors", "0.1 is not between 0.25 and 4."),
        ({"factors": []}, "factors", "the list is empty."),
        ({"limit": 2.0}, "limit", "2 is not between 0 and 1."),
        ({"limit": float("nan")}, "limit", "nan is not between 0 and 1."),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_its_field_and_its_bounds(values, field, found):
    with pytest.raises(ConfigError) as caught:
        from_dict(Settings, values, "settings.yaml")
    assert "settings.yaml" in caught.value.where
    assert caught.value.problem == f"'{field}': {found}"
