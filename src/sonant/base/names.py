"""Did you mean: the nearest of the names that exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a typing mistake most probably meant, or None."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.5)
    return by_folded[found[0]] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """An imperative sentence for an error: the nearest name, or all of them."""
    names = sorted(known)
    best = nearest(name, names)
    if best:
        return f"Did you mean '{best}'?"
    return f"Choose one of: {', '.join(names)}." if names else "None exists."
