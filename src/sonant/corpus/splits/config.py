"""What can be asked of a split: by what, how large, balanced over which labels, how many times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sonant.base.errors import ConfigError

SUM_TOLERANCE = 0.0101  # three thirds written as 0.33 are meant as a whole
_ROUNDING = 1e-9  # 1 - 0.7 - 0.3 is meant as nothing


def _usual_proportions() -> dict[str, float]:
    return {"train": 0.8, "dev": 0.1, "test": 0.1}


@dataclass(frozen=True, kw_only=True)
class SplitConfig:
    """`auto` takes the splits of the source, unless anything is said here about dividing; else it divides by speaker.

    Where speakers are unknown, or fewer than splits, it divides by hash of the id.
    """

    by: Literal["auto", "speaker", "hash", "column", "file", "none"] = "auto"
    proportions: dict[str, float] = field(default_factory=_usual_proportions)
    counts: dict[str, int] = field(default_factory=dict)  # utterances of these splits; the others share what is left
    sized_by: Literal["utterances", "seconds"] = "utterances"  # what proportions are proportions of
    column: str = ""  # label or further column that holds the name of the split
    file: str = ""  # saved splits to take, local or remote
    plan: str = ""  # which plan of the file; empty: its first
    stratify: tuple[str, ...] = ()  # labels spread evenly over the splits
    rare: int = 10  # strata of fewer speakers (or utterances) are merged into one
    targets: tuple[str, ...] = ()  # labels that an utterance must have to be in any split
    seeds: tuple[int, ...] = (0,)  # one plan for each
    folds: int = 0  # cross-validation: each utterance is tested in exactly one of so many folds
    inner_folds: int = 0  # nested: within what a fold does not test, each is `dev` in exactly one of so many

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_folds()
        self._check_sources()

    def _check_sizes(self) -> None:
        for name, share in self.proportions.items():
            if not -_ROUNDING <= share <= 1 + _ROUNDING:
                raise ConfigError(f"proportions.{name}", f"{share:g} was found.", "Give a number from 0 to 1.")
        total = sum(self.proportions.values())
        if abs(total - 1) > SUM_TOLERANCE:
            raise ConfigError("proportions", f"they sum to {total:g}, 1 is required.", "Change one of them.")
        for name, count in self.counts.items():
            if count < 0:
                raise ConfigError(f"counts.{name}", f"{count} was found.", "Give a number of utterances.")
        if self.counts and self.sized_by != "utterances":
            raise ConfigError("sized_by", "counts are counts of utterances.", "Leave sized_by out.")

    def _check_folds(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError("seeds", f"{list(self.seeds)} was found.", "Give different numbers, at least one.")
        fewest = 2 if self.inner_folds else 3  # without inner folds the next fold is `dev`
        if self.folds and self.folds < fewest:
            raise ConfigError("folds", f"{self.folds} leaves nothing to train on.", f"Give {fewest} or more, or 0.")
        if self.inner_folds and (not self.folds or self.inner_folds < 2):
            problem = "inner folds divide what each of the folds leaves."
            raise ConfigError("inner_folds", problem, "Give folds, and 2 or more inner folds.")
        if self.folds and self.counts:
            raise ConfigError("counts", "folds are of equal size.", "Leave either counts or folds out.")

    def _check_sources(self) -> None:
        """Refuses what would have no effect."""
        for name in ("column", "file"):
            if bool(getattr(self, name)) != (self.by == name):
                problem = f"the splits are by '{self.by}', the {name} is '{getattr(self, name)}'."
                raise ConfigError(name, problem, f"Give both, or neither: by: {name} and a {name}.")
        if self.plan and self.by != "file":
            raise ConfigError("plan", "only files of splits hold plans.", "Give by: file as well.")
        if self.by in ("column", "file", "none"):
            for name in ("counts", "stratify", "targets", "folds"):
                if getattr(self, name):
                    raise ConfigError(name, f"it has no effect on splits by '{self.by}'.", "Leave one of them out.")

    @property
    def asks_for_division(self) -> bool:
        """Whether anything here is about dividing, so that splits of the source are not what is wanted."""
        usual = SplitConfig()
        names = ("proportions", "counts", "stratify", "targets", "seeds", "folds", "sized_by")
        return any(getattr(self, name) != getattr(usual, name) for name in names)

    @property
    def num_parts(self) -> int:
        """The fewest speakers, or utterances, that give each split one."""
        return self.folds * max(self.inner_folds, 1) or len({*self.shares, *self.counts})

    @property
    def shares(self) -> dict[str, float]:
        """The proportions in the order of their names, exactly 1 together; those of nothing are left out."""
        named = {name: share for name, share in sorted(self.proportions.items()) if share > _ROUNDING}
        total = sum(named.values())
        return {name: share / total for name, share in named.items()}
