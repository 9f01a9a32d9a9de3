"""The figures of a corpus as plain values: what `sonant inspect --json` prints and the page draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sonant.corpus.manifest import Corpus

_QUANTILES = {"min": 0.0, "5%": 0.05, "median": 0.5, "95%": 0.95, "max": 1.0}


def summarize(corpus: Corpus) -> dict[str, Any]:
    """Everything that can be said without reading a recording."""
    table = corpus.table
    return {
        "folder": corpus.folder,
        "hours": corpus.hours,
        "utterances": len(corpus) - table["audio"].null_count,
        "documents": _num_documents(table),
        "recordings": len(pc.unique(_recordings(table))),
        "speakers": _num_distinct(table["speaker"]),
        "characters": int(pc.sum(pc.utf8_length(table["text"])).as_py() or 0),
        "words": _num_words(table["text"]),
        "splits": splits(corpus),
        "seconds": quantiles(corpus.seconds),
        "characters_per_second": quantiles(characters_per_second(corpus)),
        "sample_rates": counts(table["sample_rate"]),
        "labels": {name: label(corpus.column(name), kind) for name, kind in corpus.labels.items()},
        "columns": further_columns(corpus),
        "alphabet": alphabet(table["text"]),
    }


def splits(corpus: Corpus) -> list[dict[str, Any]]:
    """A row a split, in the order of training, then of their names."""
    usual = ("train", "dev", "valid", "validation", "test")
    names = [value for value in pc.unique(corpus.table["split"]).to_pylist() if value is not None]
    names.sort(key=lambda name: (usual.index(name) if name in usual else len(usual), name))
    rows = [_split(corpus.split(name), name) for name in names]
    outside = corpus.where(pc.is_null(corpus.table["split"]))
    return [*rows, _split(outside, None)] if len(outside) else rows


def _split(part: Corpus, name: str | None) -> dict[str, Any]:
    if len(part) and part.table["audio"].null_count == len(part):
        texts = part.table["text"]
        characters = int(pc.sum(pc.utf8_length(texts)).as_py() or 0)
        return {"split": name, "documents": _num_documents(part.table), "characters": characters}
    speakers = _num_distinct(part.table["speaker"])
    return {
        "split": name,
        "utterances": len(part),
        "hours": part.hours,
        **({"speakers": speakers} if speakers else {}),
        "median seconds": float(np.median(part.seconds)),
    }


def split_table(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """What `splits` gave, as columns and cells to be shown."""
    columns = list(dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row))
    shown = [{**row, "split": row["split"] or "(none)"} for row in rows]
    return columns, [[_cell(row.get(name, "")) for name in columns] for row in shown]


def _cell(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


def characters_per_second(corpus: Corpus) -> np.ndarray:
    """Of the utterances that have both text and sound."""
    characters = pc.fill_null(pc.utf8_length(corpus.table["text"]), 0).to_numpy()
    both = (corpus.seconds > 0) & (characters > 0)
    rates: np.ndarray = characters[both] / corpus.seconds[both]
    return rates


def quantiles(values: np.ndarray) -> dict[str, float]:
    """Five figures and the mean; nothing for no values."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return {}
    found = {name: float(np.quantile(finite, share)) for name, share in _QUANTILES.items()}
    return found | {"mean": float(finite.mean())}


def counts(column: Any) -> dict[str, int]:
    """How often each value occurs, most frequent first; missing values are left out."""
    entries = pc.value_counts(column.drop_null()).to_pylist()
    return {str(entry["values"]): entry["counts"] for entry in sorted(entries, key=lambda one: -one["counts"])}


def label(values: np.ndarray, kind: str) -> dict[str, Any]:
    """How a label is distributed: counts of its values, or quantiles where it is a finely measured number."""
    if kind == "number":
        known = values[np.isfinite(values.astype(np.float64))].astype(np.float64)
        distinct, times = np.unique(known, return_counts=True)
        found: dict[str, Any] = {"kind": kind, "missing": len(values) - len(known)}
        if len(distinct) <= 20:
            return found | {"values": {f"{value:g}": int(count) for value, count in zip(distinct, times, strict=True)}}
        return found | {"quantiles": quantiles(known)}
    present = [value for value in values if value is not None]
    flat: Iterable[str] = (one for value in present for one in value) if kind == "strings" else present
    return {"kind": kind, "missing": len(values) - len(present), "values": dict(Counter(flat).most_common())}


def alphabet(texts: Any) -> dict[str, int]:
    """Every character of the texts with its count, most frequent first."""
    found: Counter[str] = Counter()
    for chunk in texts.chunks:
        for text in chunk.drop_null():
            found.update(text.as_py())
    return dict(found.most_common())


def further_columns(corpus: Corpus) -> list[str]:
    """Those of the source that are neither labels nor anything that a manifest knows."""
    ours = {"document", "part"} if corpus.table["audio"].null_count else set()
    return [name for name in corpus.description.get("columns", {}) if name not in ours]


def _recordings(table: pa.Table) -> Any:
    return table["audio"].drop_null()


def _num_documents(table: pa.Table) -> int:
    """Rows without sound; the parts of a long document count as one, in every split that holds some of them."""
    texts = table.filter(pc.is_null(table["audio"]))
    if "part" not in table.column_names or "document" not in table.column_names:
        return int(texts.num_rows)
    return _num_distinct(pc.coalesce(texts["document"], texts["id"]))


def _num_distinct(column: Any) -> int:
    return int(pc.count_distinct(column).as_py())


def _num_words(texts: Any) -> int:
    trimmed = pc.utf8_trim_whitespace(texts.drop_null())
    return int(
        pc.sum(pc.list_value_length(pc.utf8_split_whitespace(pc.filter(trimmed, pc.not_equal(trimmed, ""))))).as_py()
        or 0
    )
