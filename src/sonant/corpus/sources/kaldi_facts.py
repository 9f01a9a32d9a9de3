"""What a Kaldi folder tells beside audio, text and speaker: `spk2gender` is a column `gender`, `utt2lang` one `lang`.

Columns that are asked for as labels become labels; the others are kept. Tables about speakers are held in memory,
those about utterances only where they are not sorted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sonant.base import storage
from sonant.base.errors import ConfigError
from sonant.base.names import suggestion
from sonant.corpus.sources.keyed import Keyed, KeyedFile, Lookup, held
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.columns import extra_name
from sonant.corpus.sources.tables.labels import Further, Labels
from sonant.corpus.utterance import Finding

_TABLE = re.compile(r"(utt|spk)2(\w+)")
# Who speaks is no further column, and what can be measured is measured.
_OTHERS = frozenset("spk utt dur num_frames max_frames min_frames num_samples".split())


def fact_tables(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The files that tell each further column; what is said of an utterance comes before what is said of a speaker."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(names, reverse=True):
        if (table := _TABLE.fullmatch(name)) and table[2] not in _OTHERS:
            found[table[2]] = (*found.get(table[2], ()), name)
    return dict(sorted(found.items()))


class Facts:
    """Labels and further columns of the utterances of one folder."""

    def __init__(self, folder: str, names: Sequence[str], options: SourceOptions, *, in_order: bool) -> None:
        tables = fact_tables(names)
        for label in options.labels:
            if label not in tables:
                problem = f"no file utt2{label} or spk2{label} tells a label '{label}'."
                action = suggestion(label, tables) if tables else "Name a table of labels with --annotations."
                raise ConfigError("--labels", problem, action)
        files = {
            name: KeyedFile(storage.join(folder, name), options.encoding) for all in tables.values() for name in all
        }
        self._tables = tables
        self._labels = Labels(options.labels, options)
        self._further = Further(
            {extra_name(name): name for name in tables if name not in options.labels}, options.missing
        )
        self._learn(files, options.labels)
        self._by_utterance = {
            name: Lookup(file, in_order=in_order) for name, file in files.items() if name.startswith("utt")
        }
        self._by_speaker: dict[str, dict[str, Keyed]] = {}
        self._speaker_findings: list[Finding] = []
        for name, file in files.items():
            if name.startswith("spk"):
                self._by_speaker[name], repeated = held(file)
                self._speaker_findings += [*file.findings, *repeated]

    def _learn(self, files: Mapping[str, KeyedFile], labels: Sequence[str]) -> None:
        for label in labels:
            for name in self._tables[label]:
                for line in files[name]:
                    self._labels.learn({label: line.value})

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the files themselves."""
        yield from self._speaker_findings
        for lookup in self._by_utterance.values():
            yield from lookup.findings

    def of(self, id: str, speaker: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Labels and further columns of an utterance."""
        cells = {column: self._cell(names, id, speaker or "") for column, names in self._tables.items()}
        return self._labels.read(cells), self._further.read(cells)

    def _cell(self, names: Sequence[str], id: str, speaker: str) -> str | None:
        for name in names:
            by_utterance = self._by_utterance.get(name)
            line = by_utterance.take(id) if by_utterance else self._by_speaker[name].get(speaker)
            if line is not None:
                return line.value
        return None
