"""Who speaks in a Kaldi folder: `utt2spk`, or `spk2utt` where it is alone; where there are both they must agree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from sonant.base.randomness import stable_hash
from sonant.corpus.sources.keyed import Keyed, KeyedFile, Lookup
from sonant.corpus.utterance import Finding


class Speakers:
    """The speaker of each utterance. `in_order` promises that they are asked for in ascending order."""

    def __init__(self, by_utterance: KeyedFile | None, by_speaker: KeyedFile | None, *, in_order: bool) -> None:
        self._lookup = Lookup(by_utterance, in_order=in_order) if by_utterance else None
        self._by_speaker = by_speaker
        self._num_without, self._first_without = 0, ""

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the files themselves."""
        yield from self._lookup.findings if self._lookup else ()
        yield from self._by_speaker.findings if self._by_speaker else ()

    def of(self, id: str) -> str | Finding | None:
        """The speaker of an utterance, or how the files contradict each other about it."""
        other = self._told_otherwise.get(id)
        if self._lookup is None:
            return other.key if other else None
        line = self._lookup.take(id)
        if line is None:
            self._num_without += 1
            self._first_without = self._first_without or id
        elif other and self._by_speaker and other.key != line.value:
            place = self._lookup.file.place(line.number)
            return _contradiction(line, place, other.key, self._by_speaker.place(other.number))
        return line.value if line else None

    def leftovers(self) -> Iterator[Finding]:
        """Utterances without a line, and lines about nothing."""
        if self._lookup is None:
            return
        file, rest = self._lookup.file, list(self._lookup.rest())
        if self._num_without:
            problem = f"it has no line for {self._num_without} utterances, among them '{self._first_without}'."
            action = "Add their lines: who speaks decides which split they are in."
            yield _warning("missing-annotation", file.location, problem, action)
        if rest:
            problem = f"{len(rest)} lines speak of no utterance, this is the first: '{rest[0].key}'."
            yield _warning("unused-annotation", file.place(rest[0].number), problem, "Check their spelling.")

    @cached_property
    def _told_otherwise(self) -> dict[str, Keyed]:
        """The line of `spk2utt` by utterance: held only where `utt2spk` does not say the same."""
        if self._by_speaker is None or (self._lookup and self._are_equal(self._lookup.file, self._by_speaker)):
            return {}
        return {id: line for line in self._by_speaker for id in line.value.split()}

    def _are_equal(self, by_utterance: KeyedFile, by_speaker: KeyedFile) -> bool:
        """Compares sums of hashes, for which nothing is held."""
        one = sum(stable_hash(line.key, line.value) for line in by_utterance)
        return one == sum(stable_hash(id, line.key) for line in by_speaker for id in line.value.split())


def _contradiction(line: Keyed, place: str, other: str, other_place: str) -> Finding:
    return Finding(
        rule="contradicting-speakers",
        place=place,
        problem=f"'{line.key}' is spoken by '{line.value}' here, but {other_place} gives it to '{other}'.",
        action="Correct one of the two, or remove spk2utt.",
        id=line.key,
    )


def _warning(rule: str, place: str, problem: str, action: str) -> Finding:
    return Finding(rule=rule, place=place, problem=problem, action=action, is_error=False)
