"""The page of a corpus: figures, plots, faults, and the worst finds to listen to. One file, nothing beside it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sonant.audio.waveform import read_waveform
from sonant.base.errors import SonantError
from sonant.corpus.inspection.findings import Found, by_rule
from sonant.corpus.inspection.summary import characters_per_second, split_table
from sonant.corpus.manifest import Corpus
from sonant.reports.page import Block, Page, Ready, figures, player, section, side_by_side, table, text, titled
from sonant.reports.plots import bars, histogram

_SECONDS_TO_HEAR = 6.0
_MOST_TO_HEAR = 24  # 190 kB each
_UNSEEN = {" ": "space", "\n": "end of line", "\t": "tab", "\u00a0": "no-break space"}


def corpus_page(corpus: Corpus, summary: dict[str, Any], findings: Sequence[Found]) -> str:
    """HTML of the whole page."""
    page = Page(f"Corpus {corpus.folder}", _subtitle(summary))
    further = f"Further columns, which --labels makes labels: {', '.join(summary['columns'])}."
    page.add(section("At a glance", figures(_figures(summary)), text(further) if summary["columns"] else ""))
    page.add(_splits(summary))
    page.add(_faults(findings))
    if len(corpus):
        page.add(_distributions(corpus, summary))
    if summary["labels"]:
        page.add(_labels(corpus, summary))
    if findings:
        page.add(_to_hear(findings))
    return page.html()


def faults_page(folder: str, findings: Sequence[Found]) -> str:
    """The page of a folder whose preparation was refused: what has to be mended."""
    page = Page(f"Not yet a corpus: {folder}", f"{len(findings):,} faults")
    return page.add(_faults(findings), _to_hear(findings)).html()


def _subtitle(summary: dict[str, Any]) -> str:
    return ", ".join(f"{shown} {name}" for name, shown in list(_figures(summary).items())[:2])


def _figures(summary: dict[str, Any]) -> dict[str, Any]:
    is_heard = summary["hours"] or not summary["documents"]
    shown = {"hours": f"{summary['hours']:.2f}"} if is_heard else {}
    names = ("utterances", "documents", "recordings", "speakers", "words", "characters")
    return shown | {name if summary[name] != 1 else name[:-1]: f"{summary[name]:,}" for name in names if summary[name]}


def _splits(summary: dict[str, Any]) -> Block:
    if not summary["splits"]:
        return ""
    columns, rows = split_table(summary["splits"])
    size, unit = ("hours", "h") if "hours" in columns else ("characters", "characters")
    sizes = {row["split"] or "(none)": round(row.get(size, 0.0), 3) for row in summary["splits"]}
    return section("Splits", side_by_side(table(columns, rows), bars(sizes, unit=unit, is_ordered=True)))


def _faults(findings: Sequence[Found]) -> Block:
    if not findings:
        return section("Faults", "<p>None found.</p>")
    columns = ("rule", "severity", "times", "example", "action")
    rows = [[one[name] for name in columns] for one in by_rule(findings)]
    return section(
        "Faults",
        table(["rule", "severity", "times", "for example", "what to do"], rows, is_sortable=False),
        note="An error rejects the utterance; a warning is only told.",
    )


def _distributions(corpus: Corpus, summary: dict[str, Any]) -> Block:
    plots = [titled("Seconds an utterance", histogram(corpus.seconds, unit="seconds"))] if summary["hours"] else []
    rates = characters_per_second(corpus)
    if rates.size:
        plots.append(titled("Characters a second", histogram(rates, unit="characters/second")))
    if "level" in corpus.table.column_names and summary["hours"]:
        levels = corpus.column("level").astype(np.float64)
        plots.append(titled("Level", histogram(levels[np.isfinite(levels)], unit="dB (0 is full scale)")))
    if summary["alphabet"]:
        named = {_UNSEEN.get(symbol, f"‘{symbol}’"): count for symbol, count in summary["alphabet"].items()}
        plots.append(titled("Characters", bars(named, most=14)))
    if len(summary["sample_rates"]) > 1:
        plots.append(titled("Sample rates", bars({f"{rate} Hz": n for rate, n in summary["sample_rates"].items()})))
    return section("Distributions", side_by_side(*plots))


def _labels(corpus: Corpus, summary: dict[str, Any]) -> Block:
    plots = []
    for name, facts in summary["labels"].items():
        missing = f" ({facts['missing']:,} missing)" if facts["missing"] else ""
        plot = (
            bars(facts["values"], is_ordered=facts["kind"] == "number", most=20)
            if "values" in facts
            else histogram(corpus.column(name), unit=name)
        )
        plots.append(titled(f"{name}{missing}", plot))
    return section("Labels", side_by_side(*plots))


def _to_hear(findings: Sequence[Found]) -> Block:
    rows = [
        [found.rule, found.id, sound, found.problem, found.place]
        for found, sound in _sounds(_worst(findings, _MOST_TO_HEAR))
    ]
    if not rows:
        return ""
    note = f"The first {_SECONDS_TO_HEAR:.0f} seconds of each."
    return section("The worst finds", table(["rule", "utterance", "sound", "problem", "place"], rows), note=note)


def _worst(findings: Sequence[Found], most: int) -> list[Found]:
    """Errors before warnings, and some of every rule rather than many of one; those of a rule stand together."""
    seen: dict[str, int] = {}
    ranked = []
    for found in findings:
        if found.audio:
            seen[found.rule] = seen.get(found.rule, 0) + 1
            ranked.append((found.severity != "error", seen[found.rule], found))
    chosen = sorted(ranked, key=lambda item: item[:2])[:most]
    return [found for *_, found in sorted(chosen, key=lambda item: (item[0], item[2].rule))]


def _sounds(findings: Iterable[Found]) -> Iterable[tuple[Found, Ready | str]]:
    """Each find with a player, or with the reason why there is nothing to hear."""
    for found in findings:
        try:
            seconds = min(found.seconds or _SECONDS_TO_HEAR, _SECONDS_TO_HEAR)
            samples, rate = read_waveform(found.audio, start=found.start, seconds=seconds, sample_rate=16000)
            yield found, player(_as_wav(samples, rate)) if samples.size else "nothing to hear"
        except SonantError as error:
            yield found, error.problem


def _as_wav(samples: np.ndarray, sample_rate: int) -> bytes:
    import soundfile

    packed = io.BytesIO()
    finite = np.nan_to_num(samples).clip(-1, 1)
    soundfile.write(packed, finite, sample_rate, format="WAV", subtype="PCM_16")
    return packed.getvalue()
