"""`sonant inspect`: what a corpus holds and what is wrong with it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sonant.cli.main import VERBS
from sonant.cli.parser import Parser

if TYPE_CHECKING:
    from sonant.corpus.inspection.findings import Found

_EPILOG = """\
examples:
  sonant inspect my-corpus
  sonant inspect my-corpus --html report.html      a page with plots, faults and a player for the worst finds
  sonant inspect my-corpus --json | jq .hours
"""


def parser() -> Parser:
    made = Parser("inspect", VERBS["inspect"], _EPILOG)
    made.add_argument("corpus", metavar="CORPUS", help="a folder that `sonant prepare` wrote, local or remote")
    made.add_argument("--split", metavar="NAME", help="only this split")
    made.add_argument("--html", metavar="FILE", help="write one self-contained page")
    made.add_argument("--json", action="store_true", help="print plain values for programs")
    return made


def run(arguments: argparse.Namespace) -> int:
    from sonant.base.errors import ManifestError
    from sonant.corpus.inspection.findings import by_rule, read_findings, with_sounds
    from sonant.corpus.inspection.summary import summarize
    from sonant.corpus.manifest import open_corpus

    findings = read_findings(arguments.corpus)
    try:
        corpus = open_corpus(arguments.corpus)
    except ManifestError:
        if not findings:
            raise
        return _only_faults(arguments, findings)
    findings = with_sounds(findings, corpus)
    corpus = corpus.split(arguments.split) if arguments.split else corpus
    summary = summarize(corpus) | {"findings": by_rule(findings)}
    if arguments.html:
        from sonant.corpus.inspection.page import corpus_page

        _write_page(arguments, corpus_page(corpus, summary, findings))
    print(json.dumps(summary, ensure_ascii=False, indent=2) if arguments.json else in_words(summary, findings))
    return 0


def _only_faults(arguments: argparse.Namespace, findings: Sequence[Found]) -> int:
    """Preparation was refused: its faults are all there is to see."""
    from sonant.base.errors import ManifestError
    from sonant.corpus.inspection.findings import by_rule
    from sonant.corpus.inspection.page import faults_page

    if arguments.html:
        _write_page(arguments, faults_page(arguments.corpus, findings))
    found = {"folder": arguments.corpus, "findings": by_rule(findings)}
    told = f"{arguments.corpus}: not yet a corpus. These faults are in the way:\n\n{_faults(findings)}"
    print(json.dumps(found, ensure_ascii=False, indent=2) if arguments.json else told)
    return ManifestError.exit_code


def _write_page(arguments: argparse.Namespace, html: str) -> None:
    from sonant.base import storage

    storage.write_text(arguments.html, html)
    print(f"The page is {arguments.html}", file=sys.stderr)


def in_words(summary: dict[str, Any], findings: Sequence[Found]) -> str:
    """The same for a terminal."""
    from sonant.corpus.inspection.summary import split_table
    from sonant.reports.terminal import text_table

    parts = [_headline(summary)]
    if summary["splits"]:
        parts.append(text_table(*split_table(summary["splits"])))
    quantiles = {"seconds": summary["seconds"], "characters/second": summary["characters_per_second"]}
    rows = [[name, *values.values()] for name, values in quantiles.items() if values]
    if rows and summary["hours"]:
        parts.append(text_table(["", *summary["seconds"]], rows))
    if summary["labels"]:
        rows = [_label(*item) for item in summary["labels"].items()]
        parts.append(text_table(["label", "values", "missing"], rows, widest=100))
    if summary["columns"]:
        parts.append(f"Further columns, which --labels makes labels: {', '.join(summary['columns'])}")
    parts.append(_faults(findings))
    return "\n\n".join(parts)


def _headline(summary: dict[str, Any]) -> str:
    counts = ", ".join(
        f"{summary[name]:,} {name if summary[name] != 1 else name[:-1]}"
        for name in ("documents", "utterances", "recordings", "speakers", "characters", "words")
        if summary[name]
    )
    rates = ", ".join(f"{rate} Hz" for rate in summary["sample_rates"])
    hours = f"{summary['hours']:.2f} hours, " if summary["hours"] or not summary["documents"] else ""
    return f"{summary['folder']}: {hours}{counts}" + (f" ({rates})" if rates else "")


def _label(name: str, facts: dict[str, Any]) -> list[Any]:
    if "values" in facts:
        shown = ", ".join(f"{value} ×{count}" for value, count in list(facts["values"].items())[:6])
        more = len(facts["values"]) - 6
        return [name, shown + (f", … {more} more" if more > 0 else ""), facts["missing"]]
    return [name, ", ".join(f"{at} {value:.3g}" for at, value in facts["quantiles"].items()), facts["missing"]]


def _faults(findings: Sequence[Found]) -> str:
    from sonant.corpus.inspection.findings import by_rule
    from sonant.reports.terminal import text_table

    if not findings:
        return "No faults."
    rows = [[one["rule"], one["severity"], one["times"], one["example"]] for one in by_rule(findings)]
    return text_table(["fault", "severity", "times", "for example"], rows, widest=100)
