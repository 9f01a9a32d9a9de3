"""Timed words as captions that can be read while they are said: two lines of 42 letters at most, broken at pauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_LINE_LETTERS, _MOST_SECONDS = 42, 6.0
_PAUSE_SECONDS = 1.0  # ends a caption
_LEAST_SECONDS, _LETTERS_PER_SECOND = 1.0, 20.0  # what it takes to read one
_SENTENCE_ENDS, _CLAUSE_ENDS = ".?!…。？！", ",;:，、；："  # those of Chinese too
_WORTH = 0.5  # seconds of pause that the end of a sentence is worth, that of a clause half of it


class Timed(Protocol):
    """A word with its times in seconds."""

    @property
    def text(self) -> str: ...
    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...


@dataclass(frozen=True)
class Caption:
    start: float
    end: float
    text: str  # its lines


def captions_of(words: Sequence[Timed], seconds: float, *, begins: frozenset[float], gap: str) -> list[Caption]:
    """`begins` are starts of words that must begin a caption; `gap` is what stands between words."""
    groups: list[Sequence[Timed]] = []
    first = 0
    while first < len(words):
        end = _end_of(words, first, begins, gap)
        groups.append(words[first:end])
        first = end
    ends = [group[0].start for group in groups[1:]] + [max(seconds, words[-1].end)] if groups else []
    return [_caption(group, limit, gap) for group, limit in zip(groups, ends, strict=True)]


def _end_of(words: Sequence[Timed], first: int, begins: frozenset[float], gap: str) -> int:
    """Behind the last word of the caption that begins with `first`: as many as fit, or fewer up to a better place."""
    end = first + 1
    while end < len(words):
        if words[end].start in begins or words[end].start - words[end - 1].end > _PAUSE_SECONDS:
            return end
        texts = [word.text for word in words[first : end + 1]]
        if words[end].end - words[first].start > _MOST_SECONDS or lines_of(texts, gap) is None:
            break
        end += 1
    else:
        return end
    later = range(first + (end - first + 2) // 3, end + 1)
    return max(later, key=lambda place: (_worth(words[place - 1], words[place]), place))


def _worth(before: Timed, behind: Timed) -> float:
    """Of a break between two words."""
    is_end, is_clause = before.text.endswith(tuple(_SENTENCE_ENDS)), before.text.endswith(tuple(_CLAUSE_ENDS))
    return behind.start - before.end + _WORTH * is_end + _WORTH / 2 * is_clause


def lines_of(texts: Sequence[str], gap: str = " ") -> list[str] | None:
    """One line, or two of like length, the second the longer one; None where they do not fit. A word alone always
    does."""
    whole = gap.join(texts)
    if len(whole) <= _LINE_LETTERS or len(texts) == 1:
        return [whole]
    pairs = [[gap.join(texts[:place]), gap.join(texts[place:])] for place in range(1, len(texts))]
    best = min(pairs, key=lambda pair: (max(map(len, pair)), len(pair[0]) > len(pair[1])))
    return best if max(map(len, best)) <= _LINE_LETTERS else None


def _caption(words: Sequence[Timed], limit: float, gap: str) -> Caption:
    """It stays until it can be read, but not beyond the next one or the end."""
    lines = lines_of([word.text for word in words], gap)
    assert lines
    start, end = words[0].start, words[-1].end
    read = start + max(_LEAST_SECONDS, sum(map(len, lines)) / _LETTERS_PER_SECOND)
    return Caption(start, max(end, min(read, limit)), "\n".join(lines))
