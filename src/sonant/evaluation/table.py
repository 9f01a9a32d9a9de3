"""The table of an evaluation: a row an utterance, in one schema for all tasks, so that any two runs can be compared.

A measure is a total and what it is counted by (errors of words by words, loss by tokens), so that the figure of a whole
split, of a speaker or of a resample is Σ totals / Σ counts of its rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sonant.base import storage
from sonant.base.errors import ManifestError
from sonant.base.names import suggestion
from sonant.metrics.comparison import UtteranceTable
from sonant.metrics.intervals import BootstrapConfig, Interval, ratio_interval

FORMAT_VERSION = 1
_FACTS = b"sonant.evaluation"
_NUMBERS = pa.map_(pa.string(), pa.float64())
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("group", pa.string()),  # what is resampled as a whole: a speaker, a document
        pa.field("seconds", pa.float64()),
        pa.field("reference", pa.string()),
        pa.field("hypothesis", pa.string()),
        pa.field("totals", _NUMBERS, nullable=False),
        pa.field("counts", _NUMBERS, nullable=False),
        pa.field("targets", _NUMBERS),  # of labels and ratings, by label
        pa.field("scores", _NUMBERS),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one utterance gave."""

    id: str
    totals: Mapping[str, float]
    counts: Mapping[str, float]
    group: str | None = None
    seconds: float | None = None
    reference: str | None = None
    hypothesis: str | None = None
    targets: Mapping[str, float] | None = None
    scores: Mapping[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What was evaluated with what."""

    task: str
    bundle: str = ""  # fingerprint of its weights and description
    data: str = ""  # fingerprint of the corpus
    split: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """The rows of an evaluation in their order."""

    facts: Facts
    rows: tuple[Row, ...]

    @property
    def measures(self) -> list[str]:
        """The figures that it has, the first of them the one that matters most."""
        return list(self.rows[0].totals) if self.rows else []

    def figure(self, measure: str) -> float:
        totals, counts = self._sums(measure)
        return float(totals.sum() / counts.sum()) if counts.sum() else float("nan")

    def figures(self) -> dict[str, float]:
        return {measure: self.figure(measure) for measure in self.measures}

    def interval(self, measure: str, config: BootstrapConfig | None = None) -> Interval:
        """The figure and where it would lie with other speakers."""
        return ratio_interval(*self._sums(measure), self._groups(), config)

    def table(self, measure: str) -> UtteranceTable:
        """One measure of it, for comparisons."""
        if measure not in self.measures:
            raise ManifestError(measure, "it was not measured.", suggestion(measure, self.measures))
        totals, counts = self._sums(measure)
        return UtteranceTable(ids=[row.id for row in self.rows], errors=totals, counts=counts, groups=self._groups())

    def _sums(self, measure: str) -> tuple[np.ndarray, np.ndarray]:
        totals = np.array([row.totals.get(measure, 0.0) for row in self.rows], np.float64)
        return totals, np.array([row.counts.get(measure, 0.0) for row in self.rows], np.float64)

    def _groups(self) -> list[str] | None:
        """Where a row has none, it is its own."""
        if all(row.group is None for row in self.rows):
            return None
        return [row.id if row.group is None else row.group for row in self.rows]


def write_evaluation(location: str, evaluation: Evaluation) -> None:
    """Writes the table with its facts."""
    columns = {name: [_plain(getattr(row, name)) for row in evaluation.rows] for name in SCHEMA.names}
    facts = json.dumps({"format": FORMAT_VERSION, **asdict(evaluation.facts)}, ensure_ascii=False)
    table = pa.table(columns, schema=SCHEMA).replace_schema_metadata({_FACTS: facts.encode()})
    storage.write_whole(location, lambda file: pq.write_table(table, file, compression="zstd"))


def read_evaluation(location: str) -> Evaluation:
    """A table that `write_evaluation` wrote."""
    try:
        with storage.open_binary(location) as file:
            table = pq.read_table(file)
    except pa.ArrowInvalid as error:
        problem = f"this is no table of an evaluation: {error}."
        raise ManifestError(location, problem, "Make it again: sonant evaluate.") from error
    noted = (table.schema.metadata or {}).get(_FACTS)
    if noted is None:
        raise ManifestError(location, "this is a table of something else.", "Make one with: sonant evaluate.")
    facts = json.loads(noted)
    if facts.pop("format") != FORMAT_VERSION:
        raise ManifestError(location, "it was written by another version.", "Make it again: sonant evaluate.")
    return Evaluation(Facts(**facts), tuple(_rows(table)))


def fingerprint_of(*locations: str) -> str:
    """A short name for the content of files, as they are; what is not there adds nothing."""
    digest = hashlib.blake2b(digest_size=8)
    for location in locations:
        if storage.exists(location):
            with storage.open_binary(location) as file:
                while block := file.read(1 << 22):
                    digest.update(block)
    return digest.hexdigest()


def _rows(table: pa.Table) -> Iterable[Row]:
    for values in table.to_pylist(maps_as_pydicts="strict"):
        yield Row(**values)


def _plain(value: object) -> object:
    return list(value.items()) if isinstance(value, Mapping) else value
