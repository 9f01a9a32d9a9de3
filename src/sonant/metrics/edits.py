"""What turns one sequence into another with the fewest edits: the errors that WER and CER count.

word_edits("the cat sat", "a cat sat up").rate    # 2 errors of 3 words
align("the cat".split(), "cat".split())           # [("deletion", "the", None), ("match", "cat", "cat")]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from rapidfuzz.distance import Levenshtein

Sign = TypeVar("Sign", bound=Hashable)
Kind = Literal["match", "substitution", "deletion", "insertion"]
_KINDS: dict[str, Kind] = {"replace": "substitution", "delete": "deletion", "insert": "insertion"}


@dataclass(frozen=True, kw_only=True)
class Edits:
    """Counts that add up over utterances: the rate of a corpus is that of the sum, never a mean of rates."""

    matches: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def num_reference(self) -> int:
        """Signs of the reference."""
        return self.matches + self.substitutions + self.deletions

    @property
    def rate(self) -> float:
        """Errors by sign of the reference: above 1 when much is inserted, infinite when there was nothing to say."""
        if self.num_reference:
            return self.errors / self.num_reference
        return float("inf") if self.errors else 0.0

    def __add__(self, other: Edits) -> Edits:
        return Edits(
            matches=self.matches + other.matches,
            substitutions=self.substitutions + other.substitutions,
            deletions=self.deletions + other.deletions,
            insertions=self.insertions + other.insertions,
        )


@dataclass(frozen=True)
class Pair(Generic[Sign]):
    """One place of an alignment; the side that has nothing there is None."""

    kind: Kind
    reference: Sign | None
    hypothesis: Sign | None


def count_edits(reference: Sequence[Hashable], hypothesis: Sequence[Hashable]) -> Edits:
    """The fewest edits; of several ways to make as few, the one of `align`."""
    counts = dict.fromkeys(_KINDS, 0)
    for operation in Levenshtein.editops(reference, hypothesis):
        counts[operation.tag] += 1
    return Edits(
        matches=len(reference) - counts["replace"] - counts["delete"],
        substitutions=counts["replace"],
        deletions=counts["delete"],
        insertions=counts["insert"],
    )


def word_edits(reference: str, hypothesis: str) -> Edits:
    """Words are what stands between spaces."""
    return count_edits(reference.split(), hypothesis.split())


def character_edits(reference: str, hypothesis: str) -> Edits:
    """One space between words counts as a character; spaces around the text do not."""
    return count_edits(" ".join(reference.split()), " ".join(hypothesis.split()))


def total(edits: Iterable[Edits]) -> Edits:
    return sum(edits, Edits())


def align(reference: Sequence[Sign], hypothesis: Sequence[Sign]) -> list[Pair[Sign]]:
    """Both sequences side by side; leaving out the Nones of a side gives it back."""
    pairs: list[Pair[Sign]] = []
    for step in Levenshtein.opcodes(reference, hypothesis):
        ours, theirs = reference[step.src_start : step.src_end], hypothesis[step.dest_start : step.dest_end]
        if step.tag == "delete":
            pairs += [Pair("deletion", sign, None) for sign in ours]
        elif step.tag == "insert":
            pairs += [Pair("insertion", None, sign) for sign in theirs]
        else:
            kind = _KINDS.get(step.tag, "match")
            pairs += [Pair(kind, a, b) for a, b in zip(ours, theirs, strict=True)]
    return pairs
