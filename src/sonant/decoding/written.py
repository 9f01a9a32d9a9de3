"""A text as people wrote it, and the ids that a recogniser would write it with: which words belong to which ids.

A model writes "eleven o'clock" where people write "Eleven o'clock,", and what is shown of an alignment is theirs. Where
the steps of a normaliser reach over several words, those stay together. Punctuation that stands alone goes with
the word before it. Where a language writes no spaces, its characters are the words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from sonant.base.errors import TextError
from sonant.decoding.spelling import Spelling
from sonant.metrics.edits import align


@dataclass(frozen=True)
class WrittenWord:
    """A word as it was written, whose ids are those from `first` to before `behind`."""

    text: str
    line: int  # of the text, counted from 0
    first: int
    behind: int


@dataclass(frozen=True)
class Written:
    """What of a text a model can write."""

    ids: tuple[int, ...]
    words: tuple[WrittenWord, ...]
    skipped: tuple[str, ...]  # words without any letter that can be written
    unknown: Counter[str]  # characters that cannot be written, wherever they stood


@dataclass
class _Group:
    """Words as they were written, and what the normalised text has of them: words, or characters without spaces."""

    text: str
    line: int
    signs: list[str]


def read_written(text: str, spelling: Spelling) -> Written:
    """Reads a text of any number of lines."""
    groups = _groups(text, spelling)
    unknown = _leave_unknown(groups, spelling)
    skipped = tuple(group.text for group in groups if not group.signs)
    groups = [group for group in groups if group.signs]
    gap = " " if spelling.has_words else ""
    ids = spelling.tokenizer.encode(gap.join(sign for group in groups for sign in group.signs))
    return Written(tuple(ids), tuple(_words(groups, ids, spelling)), skipped, unknown)


def _groups(text: str, spelling: Spelling) -> list[_Group]:
    """The words of a text; those that only change together are one."""
    normalizer = spelling.tokenizer.normalizer
    pieces = [(piece, line) for line, row in enumerate(text.splitlines()) for piece in _pieces(row, spelling)]
    own = [_pieces(normalizer(piece), spelling) for piece, _ in pieces]
    whole = _pieces(normalizer(" ".join(text.split())), spelling)
    alone = [sign for signs in own for sign in signs]
    places = list(range(len(alone) + 1)) if alone == whole else _clean_places(alone, whole)
    groups: list[_Group] = []
    before, begun = "", 0  # what stands in front of the first word; signs of the whole that are used up
    gap = " " if spelling.has_words else ""
    ends = list(accumulate(map(len, own)))
    for (piece, line), end in zip(pieces, ends, strict=True):
        before = f"{before}{gap}{piece}" if before else piece
        place = places[end]
        if place is None:
            continue
        if place > begun:
            groups.append(_Group(before, line, whole[begun:place]))
        elif groups:
            groups[-1].text += gap + before
        else:
            continue
        before, begun = "", place
    return groups


def _clean_places(alone: Sequence[str], whole: Sequence[str]) -> list[int | None]:
    """For each place among the signs of words alone the place in the whole text; None inside of what differs."""
    places: list[int | None] = [None] * (len(alone) + 1)
    here, there, was_match = 0, 0, True
    for pair in align(alone, whole):
        is_match = pair.kind == "match"
        if is_match or was_match:
            places[here] = there
        here, there, was_match = here + (pair.reference is not None), there + (pair.hypothesis is not None), is_match
    places[here] = there
    return places


def _pieces(text: str, spelling: Spelling) -> list[str]:
    return text.split() if spelling.has_words else list("".join(text.split()))


def _leave_unknown(groups: list[_Group], spelling: Spelling) -> Counter[str]:
    """Takes out of the signs what no symbol stands for."""
    tokenizer, found = spelling.tokenizer, Counter[str]()
    if not tokenizer.unknown_in(" ".join(sign for group in groups for sign in group.signs)):
        return found
    for group in groups:
        kept = []
        for sign in group.signs:
            unknown = tokenizer.unknown_in(sign)
            found += unknown
            kept += _pieces(tokenizer.normalizer("".join(one for one in sign if one not in unknown)), spelling)
        group.signs = kept
    return found


def _words(groups: list[_Group], ids: Sequence[int], spelling: Spelling) -> list[WrittenWord]:
    spans, sizes = _spans(ids, spelling)
    ends = dict(zip(accumulate(sizes), spans, strict=True))
    begins = dict(zip(accumulate(sizes, initial=0), spans, strict=False))
    num_signs = list(accumulate(len(group.signs) for group in groups))
    if sum(sizes) != (num_signs[-1] if num_signs else 0):
        text = " ".join(group.text for group in groups)
        problem = "its words and the symbols that write them do not go together."
        raise TextError(f"'{text[:40]}'", problem, "Use a tokenizer that keeps spaces, or writes none.")
    words, together, begun = [], list[_Group](), 0
    gap = " " if spelling.has_words else ""
    for group, end in zip(groups, num_signs, strict=True):
        together.append(group)
        if end in ends:  # a symbol may reach over several characters
            text = gap.join(one.text for one in together)
            words.append(WrittenWord(text, together[0].line, begins[begun][0], ends[end][1]))
            together, begun = [], end
    return words


def _spans(ids: Sequence[int], spelling: Spelling) -> tuple[list[tuple[int, int]], list[int]]:
    """The ids of each word, and that they are one; or each id, and how many characters it writes."""
    if not spelling.has_words:
        sizes = [len("".join(spelling.tokenizer.decode([id]).split())) for id in ids]
        return [(place, place + 1) for place in range(len(ids))], sizes
    spans = []
    for first, behind in pairwise([*spelling.word_starts(ids), len(ids)]):
        told = [place for place in range(first, behind) if not spelling.divides(ids[place])]
        if told:
            spans.append((told[0], told[-1] + 1))
    return spans, [1] * len(spans)
