"""What `corpus.json` says beside the rows: where they come from, how they were judged and divided."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sonant import __version__
from sonant.base import storage
from sonant.base.config import differences
from sonant.base.errors import SourceError
from sonant.corpus.preparation.config import PrepareConfig
from sonant.corpus.preparation.draft import Draft
from sonant.corpus.splits import Splitter
from sonant.corpus.utterance import Source


def describe(
    draft: Draft, sources: Mapping[str, Source], folder: str, config: PrepareConfig, splitter: Splitter
) -> dict[str, Any]:
    """Nothing of it depends on when, how fast or in how many attempts the corpus was prepared."""
    (num_recordings,) = next(draft.select("SELECT count(DISTINCT audio) FROM draft.rows WHERE NOT rejected"))
    counts = "SELECT split, count(*) FROM draft.rows WHERE NOT rejected AND split IS NOT NULL GROUP BY split"
    return {
        "name": os.path.basename(folder.rstrip("/")),
        "sonant": __version__,
        "recordings": num_recordings,
        "splits": {"by": splitter.by, "plans": list(splitter.names), "utterances": dict(draft.select(counts))},
        "vocabulary": _vocabulary(sources),
        "sources": [
            {"format": source.name, "location": _seen_from(folder, location)} for location, source in sources.items()
        ],
        "config": differences(replace(config, workers=0, engine="local")),  # which change nothing
        "rejected": draft.num_rejected(),
        "warnings": draft.counts(is_error=False),
    }


def _vocabulary(sources: Mapping[str, Source]) -> list[str] | None:
    """The symbols behind `tokens`; one id cannot mean two symbols."""
    chosen: tuple[str, list[str]] | None = None
    for location, source in sources.items():
        symbols = source.vocabulary()
        if symbols is None:
            continue
        if chosen and chosen[1] != symbols:
            problem = f"its token ids have other symbols than those of {chosen[0]}."
            raise SourceError(location, problem, "Prepare the two apart, or give both texts instead of tokens.")
        chosen = location, symbols
    return chosen and chosen[1]


def _seen_from(folder: str, location: str) -> str:
    if storage.is_remote(location) or storage.is_remote(folder):
        return location
    return os.path.relpath(os.path.abspath(location), os.path.realpath(folder))
