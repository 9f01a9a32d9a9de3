"""From sources to the draft: every recording is heard once, every utterance judged and laid down in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonant.corpus.preparation.config import PrepareConfig
from sonant.corpus.preparation.draft import Draft, Row
from sonant.corpus.preparation.engines import Engine, in_order
from sonant.corpus.preparation.facts import RecordingFacts, SpanFacts, Task, measure_all
from sonant.corpus.preparation.grouping import Batch, Group, Member, batches_of, groups_of, members_of
from sonant.corpus.preparation.journal import Journal
from sonant.corpus.preparation.judge import faults_of, time_fault
from sonant.corpus.preparation.rules import judged, new_finding
from sonant.corpus.utterance import Source

_Answer = tuple[str, RecordingFacts | None]


class Measuring:
    """One pass over the sources."""

    def __init__(self, journal: Journal, draft: Draft, engine: Engine, config: PrepareConfig) -> None:
        self.journal, self.draft, self.engine, self.config = journal, draft, engine, config
        self.num_decoded = 0

    def run(self, sources: Sequence[Source]) -> Iterator[int]:
        """Fills the draft; gives the number of utterances laid down, again and again."""
        batches = batches_of(groups_of(self._members(sources), self.journal))
        for batch, answers in in_order(self.engine, measure_all, ((one, one.tasks) for one in batches), _crashed):
            yield self._settle(batch, iter(answers))

    def _members(self, sources: Sequence[Source]) -> Iterator[Member]:
        for item in members_of(sources):
            if isinstance(item, Member):
                yield item
                continue
            position, finding = item
            found = judged(finding, self.config.severities)
            self.draft.add_findings([(position, found)] if found else [])

    def _settle(self, batch: Batch, answers: Iterator[_Answer]) -> int:
        rows: list[Row] = []
        met: list[tuple[str, str, str]] = []
        for group in batch.groups:
            facts = RecordingFacts()
            if group.task is not None:
                mark, facts = self._facts(group, group.task, answers)
                met.append((group.task.key, group.task.audio.partition("#")[0], mark))
            for member, heard in _heard(group, facts):
                is_rejected = self._judge(member, facts, heard)
                rows.append(_row(member, facts, heard, is_rejected=is_rejected))
        self.draft.add(rows)
        self.draft.add_met(met)
        self.journal.commit_now_and_then()
        return len(rows)

    def _judge(self, member: Member, facts: RecordingFacts, heard: SpanFacts | None) -> bool:
        """Lays down what is wrong with an utterance; true where it cannot stay."""
        one = member.utterance
        faults = faults_of(one, facts, heard, self.config.limits)
        findings = [new_finding(rule, one.place, problem, action, one.id) for rule, problem, action in faults]
        kept = [found for finding in findings if (found := judged(finding, self.config.severities))]
        self.draft.add_findings((member.position, found) for found in kept)
        return any(found.is_error for found in kept)

    def _facts(self, group: Group, task: Task, answers: Iterator[_Answer]) -> tuple[str, RecordingFacts]:
        """What a worker found, or what was known before; both are remembered for the next run."""
        mark, facts = next(answers) if group.is_open else (group.mark, None)
        if facts is not None:
            self.num_decoded += 1
            self.journal.remember(task.key, mark, facts)
        return mark, facts or group.known or RecordingFacts()


def _heard(group: Group, facts: RecordingFacts) -> Iterator[tuple[Member, SpanFacts | None]]:
    """Each utterance with its facts; those with impossible times were not asked for."""
    spans = iter(facts.spans)
    for member in group.members:
        yield member, None if time_fault(member.utterance) else next(spans, None)


def _row(member: Member, facts: RecordingFacts, heard: SpanFacts | None, *, is_rejected: bool) -> Row:
    row = Row.of(*member)
    if heard is None:
        return row._replace(rejected=is_rejected)
    return row._replace(
        seconds=heard.num_samples / facts.sample_rate,
        sample_rate=facts.sample_rate,
        num_channels=facts.num_channels,
        content=heard.content,
        peak=heard.peak,
        level=heard.level,
        rejected=is_rejected,
    )


def _crashed(task: Task) -> _Answer:
    problem = "decoding it brought the process down."
    action = "Convert it to WAV or FLAC; if it is very large, give prepare more memory."
    return "", RecordingFacts(rule="unreadable-audio", problem=problem, action=action)
