"""Puts the utterances of one recording next to each other, holding rows only where the source did not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sonant.corpus.utterance import Finding, Utterance


def are_together(names: Iterable[str]) -> bool:
    """Whether equal names stand next to each other."""
    seen: set[int] = set()
    last = None
    for name in names:
        if name != last:
            if hash(name) in seen:
                return False
            seen.add(hash(name))
            last = name
    return True


def gathered(rows: Iterable[Utterance | Finding]) -> Iterator[Utterance | Finding]:
    """Findings at once; then the utterances of each recording together, in the order of their first ones."""
    by_recording: dict[str | None, list[Utterance]] = {}
    for row in rows:
        if isinstance(row, Finding):
            yield row
        else:
            by_recording.setdefault(row.audio, []).append(row)
    for utterances in by_recording.values():
        yield from utterances
