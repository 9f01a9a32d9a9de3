"""Decides splits in two passes over the utterances: the first learns what there is, the second says where each belongs.

    splitter = plan_splits(corpus, SplitConfig(by="speaker", stratify=("gender",), seeds=(0, 1)))
    splitter.names                        # ("seed0", "seed1")
    splitter.splits_of(utterance)         # ("train", "dev")

Nothing depends on the order of the utterances. What the first pass keeps grows with the number of speakers; by hash
it keeps nothing, unless counts, strata or folds are asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, Protocol

import numpy as np

from sonant.base.errors import ConfigError
from sonant.base.randomness import uniform_for
from sonant.corpus.splits.config import SplitConfig
from sonant.corpus.splits.files import Splits, load_splits
from sonant.corpus.splits.plans import plan_names, plans_of
from sonant.corpus.splits.shares import without_empty
from sonant.corpus.splits.strata import Traits, is_missing, refuse_unknown, value_of
from sonant.corpus.utterance import Finding

_TINY = 1000  # utterances; in more of them no split stays empty by chance


class Splittable(Protocol):
    """What splitting looks at: any `Utterance`."""

    @property
    def id(self) -> str: ...
    @property
    def speaker(self) -> str | None: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def split(self) -> str | None: ...
    @property
    def labels(self) -> Mapping[str, Any]: ...
    @property
    def extra(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Splitter:
    """Says to which split each utterance belongs, under each of the plans."""

    by: str  # what was decided: source, speaker, hash, column, file or none
    names: tuple[str, ...]
    splits_of: Callable[[Splittable], tuple[str | None, ...]]
    saved: Splits | None = None  # where they come from a file

    def findings(self, ids: Iterable[str]) -> Iterator[Finding]:
        """What of a file of splits does not fit a corpus of these ids."""
        return self.saved.findings(ids) if self.saved else iter(())


def assign_splits(utterances: Iterable[Splittable], config: SplitConfig) -> np.ndarray:
    """The split of each utterance under the first plan: array of strings, None outside every split."""
    splitter = plan_splits(utterances, config)
    return np.array([splitter.splits_of(utterance)[0] for utterance in utterances] or [], dtype=object)


def plan_splits(utterances: Iterable[Splittable], config: SplitConfig) -> Splitter:
    """The first pass; `utterances` must give the same again when it is iterated anew."""
    if config.by == "none":
        return Splitter("none", ("none",), lambda utterance: (None,))
    if config.by == "file":
        return _by_file(config)
    by = _decided(utterances, config) if config.by == "auto" else config.by
    if by == "source":
        return Splitter(by, ("source",), lambda utterance: (utterance.split or None,))
    if by == "column":
        return _by_column(utterances, config)
    if by == "hash" and not (config.counts or config.stratify or config.folds or config.sized_by == "seconds"):
        return _by_draw(utterances, config)
    return _by_units(utterances, config, by)


def _decided(utterances: Iterable[Splittable], config: SplitConfig) -> str:
    speakers: set[str] = set()
    for utterance in utterances:
        if utterance.split and not config.asks_for_division:
            return "source"
        if utterance.speaker and len(speakers) < config.num_parts:
            speakers.add(utterance.speaker)
    return "speaker" if speakers and len(speakers) >= config.num_parts else "hash"


def _by_file(config: SplitConfig) -> Splitter:
    splits = load_splits(config.file, config.plan)
    names = (config.plan,) if config.plan else tuple(splits.plans)
    found = dict(zip(splits.ids, zip(*(splits.plan(name) for name in names), strict=True), strict=True))
    outside = (None,) * len(names)
    return Splitter("file", names, lambda utterance: found.get(utterance.id, outside), splits)


def _by_column(utterances: Iterable[Splittable], config: SplitConfig) -> Splitter:
    known = {name for utterance in utterances for name in (*utterance.labels, *utterance.extra)}
    refuse_unknown((config.column,), known, "column")

    def splits_of(utterance: Splittable) -> tuple[str | None]:
        value = value_of(utterance, config.column)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # a column of fold numbers
        return (None if is_missing(value) else str(value),)

    return Splitter("column", ("column",), splits_of)


def _has_targets(utterance: Splittable, config: SplitConfig) -> bool:
    return not any(is_missing(value_of(utterance, name)) for name in config.targets)


def _seen(utterances: Iterable[Splittable], config: SplitConfig) -> Iterator[Splittable]:
    """The utterances that belong to a split; in the end, refuses labels that none of them all has."""
    known: set[str] = set()
    num_utterances = 0
    for utterance in utterances:
        num_utterances += 1
        known.update(utterance.labels, utterance.extra)
        if _has_targets(utterance, config):
            yield utterance
    if num_utterances:
        refuse_unknown(config.targets, known, "targets")
        refuse_unknown(config.stratify, known, "stratify")


def _by_draw(utterances: Iterable[Splittable], config: SplitConfig) -> Splitter:
    """Each id alone decides: a growing corpus never moves what it had. Only in a tiny one an empty split is filled."""
    bounds = list(zip(accumulate(config.shares.values()), config.shares, strict=True))

    def drawn(seed: int, id: str) -> str:
        draw = uniform_for(seed, id, "split")
        return next((name for bound, name in bounds if draw < bound), bounds[-1][1])

    seen = _seen(utterances, config)
    whole_of = _wholes(utterances, config)
    first = list(dict.fromkeys(whole_of(utterance) for utterance in islice(seen, _TINY + 1)))
    deque(seen, maxlen=0)  # to the end, where unknown labels are refused
    tiny = first if len(first) <= _TINY else []
    filled = {seed: without_empty({id: drawn(seed, id) for id in tiny}, config.shares, seed) for seed in config.seeds}

    def splits_of(utterance: Splittable) -> tuple[str | None, ...]:
        if not _has_targets(utterance, config):
            return (None,) * len(config.seeds)
        whole = whole_of(utterance)
        return tuple(filled[seed].get(whole) or drawn(seed, whole) for seed in config.seeds)

    return Splitter("hash", plan_names(config), splits_of)


def _by_units(utterances: Iterable[Splittable], config: SplitConfig, by: str) -> Splitter:
    """Divides speakers, or utterances, of which counts, strata or folds must be known before."""
    units: dict[str, Traits] = {}
    has_speakers, whole_of = False, _wholes(utterances, config)

    def unit_of(utterance: Splittable) -> str:
        """Utterances of unknown speakers stand for themselves."""
        is_known = by == "speaker" and utterance.speaker
        return f"speaker {utterance.speaker}" if is_known else f"utterance {whole_of(utterance)}"

    for utterance in _seen(utterances, config):
        has_speakers = has_speakers or bool(utterance.speaker)
        traits = units.setdefault(unit_of(utterance), Traits(len(config.stratify)))
        traits.add(utterance.seconds or 0.0, [value_of(utterance, name) for name in config.stratify])
    if units and by == "speaker" and not has_speakers:
        action = "Split by hash, or say which column names the speaker."
        raise ConfigError("by", "no utterance of this corpus names its speaker.", action)
    plans = list(plans_of(units, config, "speakers" if by == "speaker" else "utterances"))

    def splits_of(utterance: Splittable) -> tuple[str | None, ...]:
        if not _has_targets(utterance, config):
            return (None,) * len(plans)
        unit = unit_of(utterance)
        return tuple(plan[unit] or None for plan in plans)

    return Splitter(by, plan_names(config), splits_of)


def _wholes(utterances: Iterable[Splittable], config: SplitConfig) -> Callable[[Splittable], str]:
    """What must not be divided: a document, unless there are fewer of them than splits."""
    found: set[str] = set()
    for utterance in utterances:
        found.add(_whole_of(utterance))
        if len(found) >= config.num_parts:
            return _whole_of
    return lambda utterance: utterance.id


def _whole_of(utterance: Splittable) -> str:
    """The id, or that of the document that a text is a part of: its parts stay together."""
    extra = utterance.extra
    is_part = extra.get("part") is not None and extra.get("document") is not None
    return str(extra["document"]) if is_part else utterance.id
