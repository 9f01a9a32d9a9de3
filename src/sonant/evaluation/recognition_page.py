"""The page of a recogniser's evaluation: figures with intervals, groups side by side, and errors word by word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from sonant.evaluation.breakdown import broken_down, percent, side_by_side, tried_decodings
from sonant.evaluation.speed import speed_in_words
from sonant.evaluation.table import Evaluation, Facts, Row
from sonant.metrics.edits import Pair, align
from sonant.metrics.intervals import BootstrapConfig, Interval
from sonant.reports.page import Block, Page, Ready, figures, section, table, text, titled

_WORST, _CONFUSED = 50, 30
_STYLES = {
    "substitution": ("#b3261e", "#1a6e2e"),
    "deletion": ("#b3261e", ""),
    "insertion": ("", "#1a6e2e"),
}


def recognition_page(
    title: str,
    evaluation: Evaluation,
    intervals: Mapping[str, Interval],
    groups: Mapping[str, Mapping[str, str]],
    config: BootstrapConfig | None = None,
) -> str:
    """`groups` are columns of the manifest, each with the value of every utterance by id."""
    rows, rates = evaluation.rows, {name: found for name, found in intervals.items() if name != "loss"}
    hours = sum(row.seconds or 0.0 for row in rows) / 3600
    page = Page(title, f"{len(rows):,} utterances, {hours:.2f} h of '{evaluation.facts.split}'")
    page.add(section("At a glance", figures({name: percent(found.value) for name, found in rates.items()})))
    cells = [
        [name, *(percent(value) for value in (found.value, found.low, found.high))] for name, found in rates.items()
    ]
    note = "Intervals: bootstrap over whole speakers. Rates are of the words, or characters, that were said."
    note += " Oracle: word errors, had the best of several answers been chosen." if "oracle" in rates else ""
    page.add(section("Figures", table(["figure", "value", "95 % low", "high"], cells, is_sortable=False), note=note))
    page.add(*_decoding(evaluation.facts))
    for column, values in groups.items():
        page.add(section(f"By {column}", table(*side_by_side(broken_down(evaluation, values, config)))))
    page.add(section("Words that were confused", table(["said", "written", "times"], confused(rows))))
    worst = sorted(rows, key=lambda row: (-row.totals["wer"], row.id))[:_WORST]
    told = [[row.id, row.totals["wer"], row.counts["wer"], aligned(row)] for row in worst if row.totals["wer"]]
    note = "Struck out: said and not written. Underlined: written and not said."
    page.add(section("Worst utterances", table(["utterance", "errors", "words", "alignment"], told), note=note))
    return page.html()


def _decoding(facts: Facts) -> Iterator[Block]:
    """How the answers were found, what else was tried, and how long it took."""
    settings: Any = facts.settings
    if "decoded" not in settings:
        return
    blocks = [text(f"The answers are those of {settings['decoded']}.")]
    if "tried" in settings:
        blocks.append(titled(f"Tried on '{settings['tuned_on']}'", table(*tried_decodings(settings["tried"]))))
    if "real_time_factor" in settings:
        blocks.append(text(f"Real-time factor {speed_in_words(settings['real_time_factor'])}."))
    yield section("Decoding", *blocks)


def confused(rows: Sequence[Row]) -> list[list[object]]:
    """What was written for what, the commonest first; a dash stands for nothing."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        for pair in _pairs(row):
            if pair.kind != "match":
                key = (pair.reference or "–", pair.hypothesis or "–")
                counts[key] = counts.get(key, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [[said, written, times] for (said, written), times in ordered[:_CONFUSED]]


def aligned(row: Row) -> Ready:
    """Both texts in one, word by word and in colour."""
    return Ready(" ".join(_shown(pair) for pair in _pairs(row)))


def _pairs(row: Row) -> list[Pair[str]]:
    return align((row.reference or "").split(), (row.hypothesis or "").split())


def _shown(pair: Pair[str]) -> str:
    if pair.kind == "match":
        return escape(pair.reference or "")
    said, written = _STYLES[pair.kind]
    parts = [f'<del style="color:{said}">{escape(pair.reference or "")}</del>'] if said else []
    parts += [f'<ins style="color:{written}">{escape(pair.hypothesis or "")}</ins>'] if written else []
    return " ".join(parts)
