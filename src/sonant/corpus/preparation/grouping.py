"""Puts together what is measured together: neighbouring utterances of one recording, and recordings of one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import SonantError
from sonant.corpus.preparation.facts import RecordingFacts, Span, Task, mark_of
from sonant.corpus.preparation.journal import Journal
from sonant.corpus.preparation.judge import time_fault
from sonant.corpus.utterance import Finding, Source, Utterance

_BATCH_RECORDINGS = 32
_BATCH_BYTES = 8_000_000
_UNKNOWN_BYTES = 250_000  # of a recording in a container, whose own size tells nothing, or in a bucket
_MOST_SPANS = 5000  # of one recording held in memory; more of them make it be decoded once more


class Member(NamedTuple):
    """An utterance, and where it stands among all that the sources give."""

    position: int
    source: int
    utterance: Utterance


@dataclass
class Group:
    """Neighbouring utterances of one recording, and what is known of it before anybody listens."""

    members: list[Member]
    task: Task | None = None  # None: there is nothing to hear
    known: RecordingFacts | None = None  # measured by an earlier run
    mark: str = ""  # of the file as it is now; empty where asking takes a while
    num_bytes: int = 0

    @property
    def is_open(self) -> bool:
        """Whether a worker must listen to the recording, or at least ask for its mark."""
        return self.task is not None and not (self.known and self.mark and self.mark == self.task.known_mark)


@dataclass
class Batch:
    """What goes to a worker at once: large enough to be worth the way, small enough to share out evenly."""

    groups: list[Group] = field(default_factory=list)

    @property
    def tasks(self) -> list[Task]:
        return [group.task for group in self.groups if group.task is not None and group.is_open]

    @property
    def is_full(self) -> bool:
        num_bytes = sum(group.num_bytes for group in self.groups)
        return num_bytes >= _BATCH_BYTES or len(self.groups) >= _BATCH_RECORDINGS


def members_of(sources: Sequence[Source]) -> Iterator[Member | tuple[int, Finding]]:
    """Everything that the sources give, numbered: utterances, and the faults of their layout."""
    position = 0
    for number, source in enumerate(sources):
        for item in source.rows():
            position += 1
            yield Member(position, number, item) if isinstance(item, Utterance) else (position, item)


def groups_of(members: Iterable[Member], journal: Journal) -> Iterator[Group]:
    gathered: list[Member] = []
    for member in members:
        if gathered and not _are_together(gathered, member):
            yield _looked_up(Group(gathered), journal)
            gathered = []
        gathered.append(member)
    if gathered:
        yield _looked_up(Group(gathered), journal)


def batches_of(groups: Iterable[Group]) -> Iterator[Batch]:
    batch = Batch()
    for group in groups:
        batch.groups.append(group)
        if batch.is_full:
            yield batch
            batch = Batch()
    if batch.groups:
        yield batch


def _are_together(gathered: Sequence[Member], member: Member) -> bool:
    first, last = gathered[0].utterance, member.utterance
    is_same = last.audio is not None and (last.audio, last.sample_rate) == (first.audio, first.sample_rate)
    return is_same and len(gathered) < _MOST_SPANS


def _looked_up(group: Group, journal: Journal) -> Group:
    heard = [member.utterance for member in group.members if time_fault(member.utterance) is None]
    if not heard or heard[0].audio is None:
        return group
    spans = tuple(Span(one.start, one.seconds, one.channel) for one in heard)
    task = Task(heard[0].audio, spans, heard[0].sample_rate)
    mark, group.known = journal.known(task.key) or ("", None)
    group.task = task._replace(known_mark=mark)
    address = Address.parse(task.audio)
    if not storage.is_remote(address.location):
        group.mark, num_bytes = _local_mark(task.audio)
        group.num_bytes = 0 if not group.is_open else _UNKNOWN_BYTES if address.member else num_bytes
    else:
        group.num_bytes = _UNKNOWN_BYTES
    return group


def _local_mark(audio: str) -> tuple[str, int]:
    try:
        mark = mark_of(audio)
    except SonantError:
        return "", 0  # whoever measures it will say what is wrong
    return mark, int(mark.split("/")[1])
