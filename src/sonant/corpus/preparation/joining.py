"""Joins sources: ids stay unique, and people of different sources stay different people."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sonant.base import storage
from sonant.base.errors import UsageError
from sonant.corpus.preparation.draft import Draft


def source_names(locations: Sequence[str]) -> list[str]:
    """What each source is called: the end of its path, as long as needed to tell it from the others."""
    whole = [location if storage.is_remote(location) else os.path.abspath(location) for location in locations]
    paths = [[part for part in location.split("/") if part] or ["root"] for location in whole]
    for path, location in zip(paths, whole, strict=True):
        if whole.count(location) > 1:
            raise UsageError(location, "this source is given twice.", "Give it once.")
        head, dot, _ = path[-1].rpartition(".")
        path[-1] = head if dot and head else path[-1]
    for length in range(1, max(map(len, paths), default=0) + 1):
        names = ["/".join(path[-length:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{number}/{path[-1]}" for number, path in enumerate(paths, start=1)]  # a.csv beside a.tsv


def join_sources(draft: Draft, names: Sequence[str], *, share_speakers: bool) -> None:
    """Puts the name of the source before its ids, and before its speakers, where two sources use the same ones."""
    if len(names) < 2:
        return
    for column in ("id",) if share_speakers else ("id", "speaker"):
        for source in _colliding(draft, column):
            draft.run(f"UPDATE draft.rows SET {column} = ? || {column} WHERE source = ?", f"{names[source]}/", source)
            if column == "id":
                of_source = "position IN (SELECT position FROM draft.rows WHERE source = ?)"
                draft.run(f"UPDATE draft.findings SET id = ? || id WHERE {of_source}", f"{names[source]}/", source)


def _colliding(draft: Draft, column: str) -> list[int]:
    query = (
        f"SELECT DISTINCT source FROM draft.rows WHERE {column} IN (SELECT {column} FROM draft.rows "
        f"WHERE {column} IS NOT NULL GROUP BY {column} HAVING count(DISTINCT source) > 1)"
    )
    return [source for (source,) in draft.select(query)]
