"""Judges the corpus as a whole: what no utterance shows by itself.

Each function looks at the rows that are left and gives its findings with the position of the utterance they are
about, or None where they are about the corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sonant.corpus.preparation.config import PrepareConfig
from sonant.corpus.preparation.draft import Draft
from sonant.corpus.preparation.judge import shortened
from sonant.corpus.preparation.rules import new_finding
from sonant.corpus.utterance import Finding

Placed = tuple[int | None, Finding]
_HAS_TEXT = "(trim(coalesce(text, '')) != '' OR tokens IS NOT NULL)"
_KIND_OF_JSON = {"integer": "number", "real": "number", "true": "number", "false": "number", "text": "string"}


def judge_whole(draft: Draft, config: PrepareConfig) -> None:
    """Rejects what cannot stay, rule by rule, and tells what is strange about the rest."""
    for look in (_missing_texts, _repeated_ids, _repeated_sounds):
        draft.add_judged(look(draft), config.severities)
        draft.reject()
    for look in (_repeated_texts, _mixed_labels, _spelt_differently):
        draft.add_judged(look(draft), config.severities)
    for column, rule in (("sample_rate", "sample-rate-surprise"), ("num_channels", "channel-surprise")):
        draft.add_judged(_surprises(draft, column, rule, config.limits.surprise_share), config.severities)
    draft.add_judged(_rare_characters(draft, config.limits.rare_character_count), config.severities)


def kinds_of(draft: Draft, column: str) -> dict[str, Counter[str]]:
    """How often each label, or further column, holds a number, a string and a list of strings."""
    query = (
        f"SELECT key, type, count(*) FROM draft.rows, json_each(draft.rows.{column}) "
        "WHERE NOT rejected GROUP BY key, type ORDER BY min(position), key"
    )
    found: dict[str, Counter[str]] = {}
    for name, kind, count in draft.select(query):
        counts = found.setdefault(name, Counter())
        if kind != "null":
            counts[_KIND_OF_JSON.get(kind, "strings")] += count
    return found


def _missing_texts(draft: Draft) -> Iterator[Placed]:
    """Sources without any text are for training without text; in the others a missing one is a gap."""
    query = (
        f"SELECT position, id, place FROM draft.rows WHERE NOT rejected AND NOT {_HAS_TEXT} AND (audio IS NULL OR "
        f"source IN (SELECT DISTINCT source FROM draft.rows WHERE {_HAS_TEXT})) ORDER BY position"
    )
    for position, id, place in draft.select(query):
        action = "Write what is said, or drop the line."
        yield position, new_finding("empty-text", place, f"'{id}' has no text, while others have.", action, id)


def _repeated(draft: Draft, column: str) -> Iterator[tuple[Any, ...]]:
    """Each utterance that is not the first of its kind, and that first one."""
    query = (
        "SELECT position, id, place, first_id, first_place FROM (SELECT position, id, place, "
        "first_value(id) OVER w AS first_id, first_value(place) OVER w AS first_place, row_number() OVER w AS number "
        f"FROM draft.rows WHERE NOT rejected AND {column} != '' WINDOW w AS (PARTITION BY {column} ORDER BY position)) "
        "WHERE number > 1 ORDER BY position"
    )
    return draft.select(query)


def _repeated_ids(draft: Draft) -> Iterator[Placed]:
    for position, id, place, _, first in _repeated(draft, "id"):
        problem = f"the id '{id}' is taken: {first} has it."
        yield position, new_finding("duplicated-id", place, problem, "Rename one of the two.", id)


def _repeated_sounds(draft: Draft) -> Iterator[Placed]:
    for position, id, place, other, first in _repeated(draft, "content"):
        problem = f"'{id}' sounds exactly as '{other}' does ({first})."
        yield position, new_finding("duplicated-audio", place, problem, "Keep the one whose text is right.", id)


def _repeated_texts(draft: Draft) -> Iterator[Placed]:
    texts = "SELECT text, count(*) AS n, min(position) AS position FROM draft.rows WHERE NOT rejected AND text != ''"
    repeated = f"({texts} GROUP BY text HAVING n > 1)"
    num_texts, num_utterances = next(draft.select(f"SELECT count(*), sum(n) FROM {repeated}"))
    if num_texts:
        most = f"SELECT n, r.text, r.place FROM {repeated} JOIN draft.rows r USING (position) ORDER BY n DESC, position"
        count, text, place = next(draft.select(most))
        problem = f"{num_utterances:,} utterances have a text that another has too: {count:,} say {shortened(text)}."
        action = "This is as it should be with prompts and commands; else look for lines that were copied."
        yield None, new_finding("duplicated-text", place, problem, action)


def _mixed_labels(draft: Draft) -> Iterator[Placed]:
    for column in ("labels", "extra"):
        for name, counts in kinds_of(draft, column).items():
            if len(counts) > 1:
                found = ", ".join(f"{count:,} of kind {kind}" for kind, count in counts.most_common())
                problem = f"'{name}' has values of different kinds ({found}); all were taken as strings."
                action = "Look for words among numbers, and say with --missing which of them mean nothing."
                yield None, new_finding("mixed-labels", _first_place(draft), problem, action)


def _spelt_differently(draft: Draft) -> Iterator[Placed]:
    """Values of a label that only case and spaces tell apart: each would become a class of its own."""
    query = (
        "SELECT key, value, count(*), min(position) FROM draft.rows, json_each(draft.rows.labels) "
        "WHERE NOT rejected AND type = 'text' GROUP BY key, value ORDER BY key, 3 DESC, 4"
    )
    spellings: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
    for name, value, count, position in draft.select(query):
        spellings.setdefault((name, "".join(value.casefold().split())), []).append((value, count, position))
    for (name, _), values in spellings.items():
        if len(values) > 1:
            (place,) = next(draft.select("SELECT place FROM draft.rows WHERE position = ?", values[-1][2]))
            shown = " and ".join(f"'{value}' (×{count:,})" for value, count, _ in values)
            problem = f"'{name}' is {shown}: they will be different classes."
            yield None, new_finding("label-spelling", place, problem, "Write them alike.")


def _surprises(draft: Draft, column: str, rule: str, share: float) -> Iterator[Placed]:
    query = (
        f"SELECT {column}, count(*), min(position), place FROM draft.rows WHERE NOT rejected AND {column} IS NOT NULL "
        f"GROUP BY {column} ORDER BY 2 DESC, 1"
    )
    unit = {"sample_rate": "Hz", "num_channels": "channels"}[column]
    found = list(draft.select(query))
    total = sum(count for _, count, *_ in found)
    for value, count, _, place in found[1:]:
        if count < share * total:
            problem = f"{count:,} of {total:,} utterances have {value} {unit}, most have {found[0][0]} {unit}."
            yield None, new_finding(rule, place, problem, "Look whether they belong here; they will be converted.")


def _rare_characters(draft: Draft, fewest: int) -> Iterator[Placed]:
    counts: Counter[str] = Counter()
    places: dict[str, str] = {}
    # Documents are not counted: what is written with them is subwords or bytes, and there are few of them.
    spoken = "NOT rejected AND audio IS NOT NULL"
    query = f"SELECT text, place FROM draft.rows WHERE {spoken} AND text != '' ORDER BY position"
    for text, place in draft.select(query):
        characters = set(text)
        for new in characters - counts.keys():
            places[new] = place
        counts.update(characters)
    rare = sorted((count, character) for character, count in counts.items() if count < fewest)
    if rare:
        shown = ", ".join(f"'{one}' ({places[one]})" for _, one in rare[:5]) + (" …" if len(rare) > 5 else "")
        what = "1 character occurs" if len(rare) == 1 else f"{len(rare):,} characters occur"
        problem = f"{what} in fewer than {fewest} utterances: {shown}."
        action = "Normalise the texts, or correct them: what is seen so seldom cannot be learnt."
        yield None, new_finding("rare-character", places[rare[0][1]], problem, action)


def _first_place(draft: Draft) -> str:
    return next((str(place) for (place,) in draft.select("SELECT place FROM draft.rows ORDER BY position LIMIT 1")), "")
