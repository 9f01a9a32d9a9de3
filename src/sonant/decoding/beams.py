"""The prefixes that a search keeps, of many utterances side by side.

Shapes: N beams, utterance by utterance and best first.
A beam is a prefix: the sum of all paths that write it, those that end in a blank apart (Hannun et al., 2014).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NONE = -1
MIX = np.int64(-7046029254386353131)  # 2^64 over the golden ratio, as a signed number


class _Row:
    """One row of an array, under a name."""

    def __init__(self, array: str, place: int) -> None:
        self.array, self.place = array, place

    def __get__(self, beams: Beams, owner: type[Beams]) -> np.ndarray:
        row: np.ndarray = getattr(beams, self.array)[self.place]
        return row


@dataclass(frozen=True, eq=False)
class Beams:
    """Numbers and logarithms in one array each: taking beams out of all of them is one call."""

    numbers: np.ndarray  # (9, N) int64
    logs: np.ndarray  # (4, N) float64

    utterance = _Row("numbers", 0)
    last = _Row("numbers", 1)  # token; the blank where there is none
    parent = _Row("numbers", 2)  # the beam of the prefix without its last token, -1 where it was dropped
    mark = _Row("numbers", 3)  # 64 bits that tell prefixes apart
    parent_mark = _Row("numbers", 4)
    trail = _Row("numbers", 5)  # where the prefix is written down, -1 for the empty one
    node = _Row("numbers", 6)  # the word at hand, as a place among all words
    state = _Row("numbers", 7)  # the n-grams' history before that word
    next_state = _Row("numbers", 8)  # and behind it
    blank = _Row("logs", 0)  # log-probability of the paths that end in a blank
    spoken = _Row("logs", 1)  # and of those that end in the last token
    closed = _Row("logs", 2)  # what the guide says of the words before the one at hand
    closing = _Row("logs", 3)  # what it would say if that word ended now; NaN until that is asked

    def take(self, places: np.ndarray) -> Beams:
        return Beams(self.numbers.take(places, axis=1), self.logs.take(places, axis=1))

    def first(self, count: int) -> Beams:
        return Beams(self.numbers[:, :count], self.logs[:, :count])

    def rest(self, start: int) -> Beams:
        return Beams(self.numbers[:, start:], self.logs[:, start:])


def empty_prefixes(num_utterances: int, blank_id: int, start: int) -> Beams:
    beams = Beams(np.zeros((9, num_utterances), np.int64), np.zeros((4, num_utterances)))
    beams.utterance[:] = np.arange(num_utterances)
    beams.last[:], beams.parent[:], beams.trail[:] = blank_id, NONE, NONE
    beams.mark[:] = np.arange(1, num_utterances + 1) * MIX
    beams.spoken[:] = -np.inf
    beams.state[:] = beams.next_state[:] = start
    return beams


def adopt(beams: Beams, new: np.ndarray) -> None:
    """A prefix that was dropped and has come back meets the longer ones that had stayed."""
    orphans = ((beams.parent == NONE) & (beams.parent_mark != 0)).nonzero()[0]
    if not orphans.size:
        return
    marks = beams.mark.take(new)
    order = np.argsort(marks)
    wanted = beams.parent_mark.take(orphans)
    places = np.minimum(np.searchsorted(marks, wanted, sorter=order), len(new) - 1)
    found = order.take(places)
    beams.parent[orphans] = np.where(marks.take(found) == wanted, new.take(found), NONE)
