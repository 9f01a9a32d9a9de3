"""What preparation found, read back: also where it refused to write a corpus because of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sonant.audio.address import Address
from sonant.base import storage
from sonant.corpus.manifest import FINDINGS, Corpus


@dataclass(frozen=True, kw_only=True)
class Found:
    """A finding with the sound that it speaks of, where there is one."""

    severity: str  # error or warning
    rule: str
    place: str
    problem: str
    action: str
    id: str = ""
    audio: str = ""
    start: float = 0.0
    seconds: float | None = None


def read_findings(folder: str) -> list[Found]:
    """All of them, in the order of the source; none where there is no list."""
    location = storage.join(folder, FINDINGS)
    if not storage.exists(location):
        return []
    lines = csv.DictReader(io.StringIO(storage.read_bytes(location).decode("utf-8"), newline=""))
    return [
        Found(
            severity=line["severity"],
            rule=line["rule"],
            place=line["place"],
            problem=line["problem"],
            action=line["action"],
            id=line["id"],
            audio=line["audio"],
            start=float(line.get("start") or 0),
            seconds=float(line.get("seconds") or 0) or None,
        )
        for line in lines
    ]


def with_sounds(findings: Sequence[Found], corpus: Corpus) -> list[Found]:
    """The same, each that names an utterance of the corpus with its stretch of the recording."""
    ids = {found.id for found in findings if found.id}
    by_id = {utterance.id: utterance for utterance in corpus.take(_rows_of(corpus, ids))}
    told = []
    for found in findings:
        one = by_id.get(found.id)
        if one and one.audio:
            told.append(replace(found, audio=one.audio, start=one.start, seconds=one.seconds))
        else:
            outside = found.audio and str(Address.parse(found.audio).below(corpus.folder))
            told.append(replace(found, audio=outside or ""))
    return told


def by_rule(findings: Sequence[Found]) -> list[dict[str, Any]]:
    """A row a rule: errors first, the most frequent first, each with an example."""
    groups: dict[tuple[str, str], list[Found]] = {}
    for found in findings:
        groups.setdefault((found.severity, found.rule), []).append(found)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1])))
    return [
        {
            "rule": rule,
            "severity": severity,
            "times": len(group),
            "example": f"{group[0].place}: {group[0].problem}",
            "action": group[0].action,
        }
        for (severity, rule), group in ordered
    ]


def _rows_of(corpus: Corpus, ids: set[str]) -> list[int]:
    mask = pc.is_in(corpus.table["id"], value_set=pa.array(sorted(ids), pa.string()))
    return [int(row) for row in pc.indices_nonzero(mask.combine_chunks())]
