"""Judges the splits: whether somebody, or something, is in two of them, and who is in none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from sonant.corpus.preparation.config import PrepareConfig
from sonant.corpus.preparation.draft import Draft
from sonant.corpus.preparation.judge import shortened
from sonant.corpus.preparation.rules import new_finding
from sonant.corpus.preparation.whole import Placed

_MEND = "Split by speaker (--split-by speaker), or allow it: severities.speaker-in-two-splits: warning."


def judge_splits(draft: Draft, config: PrepareConfig, by: str) -> None:
    """Looks at the first plan. Whoever splits by hash knows that speakers cross: that is told, not refused."""
    usual = "warning" if by == "hash" else "error"
    is_error = config.severities.get("speaker-in-two-splits", usual) == "error"
    draft.add_judged(_torn_speakers(draft) if is_error else _torn_in_short(draft), config.severities)
    draft.reject()
    draft.add_judged(_shared_texts(draft), config.severities)
    draft.add_judged(_outside(draft), config.severities)
    if by == "hash" and config.splits.by == "auto":
        draft.add_judged(_nameless(draft), config.severities)


def _nameless(draft: Draft) -> Iterator[Placed]:
    """Who is not named cannot be kept out of a test; whoever asks for a split by hash knows that."""
    query = "SELECT count(speaker), count(audio), place FROM draft.rows WHERE NOT rejected HAVING min(position)"
    for num_speakers, num_heard, place in draft.select(query):
        if num_heard and not num_speakers:
            problem = "no utterance names its speaker, so that one voice may be in training and in a test."
            action = "Name the column (--columns speaker=…) or the part of the path (--pattern {speaker}_{take})."
            yield None, new_finding("unknown-speakers", place, problem, action)


def _splits_of_speakers(draft: Draft) -> dict[str, Counter[str]]:
    """For each speaker who is in several splits, the number of utterances in each."""
    query = (
        "SELECT speaker, split, count(*) FROM draft.rows WHERE NOT rejected AND split IS NOT NULL AND speaker IN "
        "(SELECT speaker FROM draft.rows WHERE NOT rejected GROUP BY speaker HAVING count(DISTINCT split) > 1) "
        "GROUP BY speaker, split ORDER BY speaker, split"
    )
    found: dict[str, Counter[str]] = {}
    for speaker, split, count in draft.select(query):
        found.setdefault(speaker, Counter())[split] = count
    return found


def _torn_speakers(draft: Draft) -> Iterator[Placed]:
    """Every utterance of such a speaker but those of the split that has most of them."""
    torn = _splits_of_speakers(draft)
    query = "SELECT position, id, place, speaker, split FROM draft.rows WHERE NOT rejected AND split IS NOT NULL"
    for position, id, place, speaker, split in draft.select(query + " ORDER BY position") if torn else ():
        home = torn[speaker].most_common(1)[0][0] if speaker in torn else split
        if split != home:
            problem = f"the speaker '{speaker}' of '{id}' is in '{split}' and in '{home}', where most utterances are."
            yield position, new_finding("speaker-in-two-splits", place, problem, _MEND, id)


def _torn_in_short(draft: Draft) -> Iterator[Placed]:
    torn = _splits_of_speakers(draft)
    if torn:
        speaker, counts = next(iter(torn.items()))
        query = "SELECT place FROM draft.rows WHERE NOT rejected AND speaker = ? ORDER BY position"
        (place,) = next(draft.select(query, speaker))
        splits = " and ".join(f"'{split}'" for split in counts)
        problem = f"speakers are in several splits ({len(torn):,} of them), for instance '{speaker}' in {splits}."
        found = new_finding("speaker-in-two-splits", place, problem, "Results will look better than they are.")
        yield None, replace(found, is_error=False)


def _shared_texts(draft: Draft) -> Iterator[Placed]:
    shared = (
        "(SELECT text, min(position) AS position FROM draft.rows WHERE NOT rejected AND text != '' "
        "AND split IS NOT NULL GROUP BY text HAVING count(DISTINCT split) > 1)"
    )
    (count,) = next(draft.select(f"SELECT count(*) FROM {shared}"))
    if count:
        query = f"SELECT r.text, r.place FROM {shared} JOIN draft.rows r USING (position) ORDER BY position"
        text, place = next(draft.select(query))
        problem = f"texts are in more than one split ({count:,} of them), for instance {shortened(text)}."
        action = "A model that learns texts by heart will look better than it is."
        yield None, new_finding("text-in-two-splits", place, problem, action)


def _outside(draft: Draft) -> Iterator[Placed]:
    first = "min(CASE WHEN split IS NULL THEN position END)"
    query = f"SELECT count(*), count(split), {first} FROM draft.rows WHERE NOT rejected"
    total, inside, position = next(draft.select(query))
    if 0 < inside < total:
        (place,) = next(draft.select("SELECT place FROM draft.rows WHERE position = ?", position))
        problem = f"{total - inside:,} of {total:,} utterances are in no split, so that nothing will use them."
        yield None, new_finding("no-split", place, problem, "Give them a split, or ask for a division.")
