"""From sources to a corpus: measure, judge, split, write. An older corpus stays until the new one is sound."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sonant.base import storage
from sonant.base.errors import ManifestError, SonantError, UsageError
from sonant.base.progress import Progress
from sonant.corpus import manifest
from sonant.corpus.preparation.config import PrepareConfig
from sonant.corpus.preparation.describing import describe
from sonant.corpus.preparation.draft import Draft
from sonant.corpus.preparation.engines import Engine, open_engine
from sonant.corpus.preparation.facts import mark_of
from sonant.corpus.preparation.joining import join_sources, source_names
from sonant.corpus.preparation.journal import Journal, journal_folder, open_journal
from sonant.corpus.preparation.leaks import judge_splits
from sonant.corpus.preparation.measuring import Measuring
from sonant.corpus.preparation.packing import FOLDER as PACKED
from sonant.corpus.preparation.packing import pack, remove_others
from sonant.corpus.preparation.rules import new_finding
from sonant.corpus.preparation.whole import judge_whole
from sonant.corpus.preparation.writing import write_corpus, write_findings, write_plans, write_rejected
from sonant.corpus.sources.registry import open_source
from sonant.corpus.splits import Splitter, plan_splits
from sonant.corpus.utterance import Source

_PASSES = 3  # over sources whose files change meanwhile
_SHOWN = 3  # findings that an error tells in full


@dataclass(frozen=True, kw_only=True)
class PrepareResult:
    """What was made, and what was found on the way."""

    folder: str
    num_utterances: int
    hours: float
    splits: dict[str, int]
    num_rejected: int  # utterances and lines left out
    rejected: dict[str, int] = field(default_factory=dict)  # by rule
    warnings: dict[str, int] = field(default_factory=dict)  # by rule
    num_decoded: int = 0  # recordings; those known from before are not decoded again
    seconds: float = 0.0  # that it took

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def prepare(
    sources: str | Sequence[str],
    folder: str,
    config: PrepareConfig | None = None,
    progress: Progress | None = None,
) -> PrepareResult:
    """Makes a corpus of somebody's recordings, or a ManifestError that says what is wrong with them."""
    config = config or PrepareConfig()
    locations = [sources] if isinstance(sources, str) else list(sources)
    if config.source.format == "demo" and not locations:
        locations = [_spoken_demo(folder, config)]
    if not locations:
        raise UsageError("prepare", "no source is given.", "Name a folder, a file or a URI, or ask for --from demo.")
    return prepare_sources({one: open_source(one, config.source) for one in locations}, folder, config, progress)


def prepare_sources(
    sources: Mapping[str, Source], folder: str, config: PrepareConfig, progress: Progress | None = None
) -> PrepareResult:
    """The same for sources that are open, by their location."""
    started = time.monotonic()
    names = source_names(list(sources))
    _refuse_own_source(sources, folder)
    with open_journal(journal_folder(folder)) as journal, open_engine(config.engine, config.workers) as engine:
        for place in (folder, storage.join(folder, PACKED)):
            storage.remove_unfinished(place)
        with progress or Progress("preparing", unit="utterances") as bar:
            draft, num_decoded = _measured(sources, journal, engine, config, bar)
        join_sources(draft, names, share_speakers=config.share_speakers)
        judge_whole(draft, config)
        splitter = _split(draft, config)
        judge_splits(draft, config, splitter.by)
        _add_local_audio(draft, folder, config)
        write_findings(folder, draft)
        _refuse_faulty(draft, folder, config)
        write_rejected(folder, draft)
        shards = pack(draft, folder, engine) if config.pack else []
        if len(splitter.names) > 1:
            write_plans(folder, draft, splitter)
        description = describe(draft, sources, folder, config, splitter)
        found = write_corpus(folder, draft, description)
        remove_others(folder, shards)
        journal.forget_unused()
        return PrepareResult(
            folder=folder,
            num_utterances=found["utterances"],
            hours=found["hours"],
            splits=description["splits"]["utterances"],
            num_rejected=sum(description["rejected"].values()),
            rejected=description["rejected"],
            warnings=description["warnings"],
            num_decoded=num_decoded,
            seconds=time.monotonic() - started,
        )


def _measured(
    sources: Mapping[str, Source], journal: Journal, engine: Engine, config: PrepareConfig, bar: Progress
) -> tuple[Draft, int]:
    """Passes over the sources until none of their files has changed meanwhile; the later passes hear only those."""
    changed: set[str] = set()
    num_decoded = 0
    for _ in range(_PASSES):
        draft = Draft(journal.connection)
        measuring = Measuring(journal, draft, engine, config)
        for count in measuring.run(list(sources.values())):
            bar.advance(count)
        num_decoded += measuring.num_decoded
        moving = set(_moving(draft))
        changed |= moving
        if not moving:
            break
    problem, action = "the file changed while the corpus was prepared; it was read again.", "Nothing needs to be done."
    findings = [(None, new_finding("recording-changed", location, problem, action)) for location in sorted(changed)]
    draft.add_judged(findings, config.severities)
    return draft, num_decoded


def _moving(draft: Draft) -> Iterator[str]:
    """Local files that are not any more what they were when they were heard."""
    for location, mark in draft.select("SELECT DISTINCT location, mark FROM draft.met WHERE mark != ''"):
        if not storage.is_remote(location):
            try:
                now = mark_of(location)
            except SonantError:
                now = ""
            if now != mark:
                yield location


def _split(draft: Draft, config: PrepareConfig) -> Splitter:
    """Decides the splits of the rows that are left, and writes those of the first plan into the draft."""
    splitter = plan_splits(draft, config.splits)
    if splitter.by != "source":
        decided = ((splitter.splits_of(one)[0], one.position) for one in draft)
        draft.set_splits(decided)
    draft.add_judged(((None, found) for found in splitter.findings(one.id for one in draft)), config.severities)
    return splitter


def _refuse_own_source(sources: Mapping[str, Source], folder: str) -> None:
    for location in sources:
        if not storage.is_remote(folder) and os.path.realpath(location) == os.path.realpath(folder):
            problem = "the corpus would lie among its own sources."
            raise UsageError(folder, problem, "Name another folder; one below it will do.")


def _add_local_audio(draft: Draft, folder: str, config: PrepareConfig) -> None:
    if not storage.is_remote(folder) or config.pack:
        return
    for audio, place in draft.select("SELECT audio, place FROM draft.rows WHERE NOT rejected"):
        if audio and not storage.is_remote(audio):
            problem = f"the corpus lies in a bucket, but '{audio}' is on this machine: others cannot read it."
            found = new_finding("local-audio", place, problem, "Copy the recordings there first, or add --pack.")
            draft.add_judged([(None, found)], config.severities)
            return


def _refuse_faulty(draft: Draft, folder: str, config: PrepareConfig) -> None:
    """Raises unless the rows that are left are a corpus."""
    counts = draft.counts(is_error=True)
    (left,) = next(draft.select("SELECT count(*) FROM draft.rows WHERE NOT rejected"))
    if counts and not (config.skip_invalid and left):
        raise ManifestError(folder, _told(draft, counts, left), _advice(folder, left))
    if not left:
        raise ManifestError(folder, "the sources hold no utterance at all.", "Look whether these are the right places.")


def _told(draft: Draft, counts: Mapping[str, int], left: int) -> str:
    rules = ", ".join(f"{count:,} {rule}" for rule, count in counts.items())
    total = sum(counts.values())
    found = "1 fault was found" if total == 1 else f"{total:,} faults were found"
    lines = [f"{found} ({rules}); {left:,} utterances are sound."]
    errors = (found for found, _ in draft.findings() if found.is_error)
    lines += [f"  {found}" for found, _ in zip(errors, range(_SHOWN), strict=False)]
    return "\n".join([*lines, " "])


def _advice(folder: str, left: int) -> str:
    all_of_them = f"All of them are in {storage.join(folder, manifest.FINDINGS)}."
    return f"{all_of_them} Mend them" + (", or leave them out with --skip-invalid." if left else ".")


def _spoken_demo(folder: str, config: PrepareConfig) -> str:
    from sonant.corpus.demo.studio import record_demo

    if storage.is_remote(folder):
        action = "Name a folder here, and copy it when it is done."
        raise UsageError(folder, "the demo is spoken on this machine.", action)
    return record_demo(os.path.join(folder, "recordings"), config.demo, config.workers)
