"""Plans: one division for each seed, for each fold of cross-validation, and for each fold within a fold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from sonant.base.errors import ConfigError
from sonant.corpus.splits.config import SplitConfig
from sonant.corpus.splits.shares import Unit, divide
from sonant.corpus.splits.strata import Traits, strata_of

OUTSIDE = ""  # the share that belongs to no split


def plan_names(config: SplitConfig) -> tuple[str, ...]:
    """`seed0`, or with folds `seed0-fold2`, or nested `seed0-fold2-inner1`."""
    folds = [f"-fold{fold}" for fold in range(config.folds)] or [""]
    inner = [f"-inner{fold}" for fold in range(config.inner_folds)] or [""]
    return tuple(f"seed{seed}{outer}{within}" for seed in config.seeds for outer in folds for within in inner)


def plans_of(units: Mapping[str, Traits], config: SplitConfig, what: str) -> Iterator[dict[str, str]]:
    """The split of each unit, plan by plan, in the order of `plan_names`; `what` the units are is said in errors."""
    strata = strata_of(units, len(config.stratify), config.rare) if config.stratify else dict.fromkeys(units, "")
    size = attrgetter("milliseconds" if config.sized_by == "seconds" else "num_utterances")
    sized = [Unit(key, size(traits), strata[key]) for key, traits in units.items()]
    shares = _shares(config, sum(unit.size for unit in sized))
    if 0 < len(sized) < config.num_parts:
        wanted = f"{config.num_parts} {'folds' if config.folds else 'splits'}"
        problem = f"{wanted} are asked for, but there are only {len(sized)} {what}."
        raise ConfigError("by", problem, "Ask for fewer, or split by hash.")
    for seed in config.seeds:
        if config.folds:
            yield from _fold_plans(sized, config, seed)
        else:
            yield divide(sized, shares, seed)


def _shares(config: SplitConfig, total: float) -> dict[str, float]:
    """Counts as shares of the whole; splits without a count have what is left, and without such splits nobody."""
    if not config.counts or not total:
        return config.shares
    left = total - sum(config.counts.values())
    if left < 0:
        problem = f"{sum(config.counts.values())} utterances are asked for, but there are only {total:g}."
        raise ConfigError("counts", problem, "Ask for fewer.")
    others = {name: share for name, share in config.shares.items() if name not in config.counts} or {OUTSIDE: 1.0}
    shares = {name: count / total for name, count in config.counts.items()}
    shares |= {name: share / sum(others.values()) * left / total for name, share in others.items()}
    return dict(sorted(shares.items()))


def _fold_plans(units: Sequence[Unit], config: SplitConfig, seed: int) -> Iterator[dict[str, str]]:
    outer = divide(units, _equal(config.folds), seed, "folds")
    for fold in range(config.folds):
        rest = [unit for unit in units if outer[unit.key] != str(fold)]
        if config.inner_folds:
            inner = divide(rest, _equal(config.inner_folds), seed, f"fold {fold}")
        else:
            inner = {unit.key: outer[unit.key] for unit in rest}
        for within in range(config.inner_folds) if config.inner_folds else [(fold + 1) % config.folds]:
            yield {
                unit.key: "test" if unit.key not in inner else "dev" if inner[unit.key] == str(within) else "train"
                for unit in units
            }


def _equal(count: int) -> dict[str, float]:
    return {str(index): 1 / count for index in range(count)}
