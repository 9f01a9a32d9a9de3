"""Says in one sentence, not in a thousand, that the paths of all recordings start from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from sonant.base.errors import SourceError
from sonant.corpus.utterance import Finding, Utterance

_MANY = 10  # missing recordings, and no other, are a wrong folder rather than a fault in every row


def unless_all_are_missing(
    rows: Iterator[Utterance | Finding], location: str, folder: str
) -> Iterator[Utterance | Finding]:
    """The same rows; a SourceError about `location` where they hold nothing but many missing recordings."""
    held: list[Utterance | Finding] = []
    for row in rows:
        if isinstance(row, Utterance):
            yield from held
            yield row
            yield from rows
            return
        held.append(row)
    missing = [row for row in held if isinstance(row, Finding) and row.rule == "missing-audio"]
    if len(missing) >= _MANY:
        problem = f"none of its {len(missing)} recordings is below {folder}, from '{missing[0].id}' on."
        raise SourceError(location, problem, "Say with --audio which folder the paths start from.")
    yield from held
