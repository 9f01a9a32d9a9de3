"""Divides things of different sizes into shares as nearly as whole things allow, at random but always the same.

Each share ends within the size of the largest thing of what it should have: a thing goes to a share that still has
room for all of it, large ones first; which one of these is drawn, so that no share gets only large or small things.
Where none has room, the share that lacks most takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sonant.base.randomness import uniform_for

_ROUNDING = 1e-6  # sizes are sums of floats


@dataclass(frozen=True)
class Unit:
    """What must stay whole: the utterances of one speaker, or one utterance."""

    key: str
    size: float
    stratum: str = ""


def divide(units: Iterable[Unit], shares: Mapping[str, float], seed: int, purpose: str = "split") -> dict[str, str]:
    """The share of each unit. Strata are divided one by one, the rarest first; each mends what the last left uneven."""
    by_stratum: dict[str, list[Unit]] = {}
    for unit in sorted(units, key=lambda unit: unit.key):
        by_stratum.setdefault(unit.stratum, []).append(unit)
    lacking = dict.fromkeys(shares, 0.0)
    chosen: dict[str, str] = {}
    for _, members in sorted(by_stratum.items(), key=lambda item: (len(item[1]), item[0])):
        total = sum(unit.size for unit in members)
        for name, share in shares.items():
            lacking[name] += share * total
        chosen |= _divide_stratum(members, lacking, seed, purpose)
    return without_empty(chosen, shares, seed, purpose)


def _divide_stratum(members: list[Unit], lacking: dict[str, float], seed: int, purpose: str) -> dict[str, str]:
    draws = {unit.key: uniform_for(seed, unit.key, purpose) for unit in members}
    chosen = {}
    for unit in sorted(members, key=lambda unit: (-unit.size, draws[unit.key])):
        # The draw that orders equal sizes must not choose as well: the first ones would all fall in the same share.
        name = _choose(lacking, unit.size, uniform_for(seed, unit.key, purpose + "/choice"))
        lacking[name] -= unit.size
        chosen[unit.key] = name
    return chosen


def _choose(lacking: Mapping[str, float], size: float, draw: float) -> str:
    roomy = {name: room for name, room in lacking.items() if room > _ROUNDING and room >= size - _ROUNDING}
    if not roomy:
        return max(lacking, key=lambda name: lacking[name])
    left = draw * sum(roomy.values())
    for name, room in roomy.items():
        left -= room
        if left < 0:
            return name
    return name  # rounding let the draw reach the very end


def without_empty(
    chosen: dict[str, str], shares: Mapping[str, float], seed: int, purpose: str = "split"
) -> dict[str, str]:
    """Gives every share a unit, as long as there are enough, from the share that has most."""
    members: dict[str, list[str]] = {name: [] for name, share in shares.items() if share > 0}
    for key in sorted(chosen):
        members[chosen[key]].append(key)
    for name, own in members.items():
        fullest = max(members.values(), key=len)
        if not own and len(fullest) > 1:
            moved = min(fullest, key=lambda key: uniform_for(seed, key, purpose + "/moved"))
            fullest.remove(moved)
            own.append(moved)
            chosen[moved] = name
    return chosen
