"""Saved splits: a Parquet, CSV or JSON file, local or remote, that says for each id to which split it belongs.

Parquet and CSV have a column `id` and a column for each plan; JSON is {plan: {split: [ids]}}, or {split: [ids]}.
The manifest of another corpus will do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from sonant.base import storage
from sonant.base.errors import ManifestError, UsageError
from sonant.base.names import suggestion
from sonant.corpus.utterance import Finding


@dataclass(frozen=True)
class Splits:
    """The split of each id under each plan; None outside every split."""

    ids: Sequence[str]
    plans: Mapping[str, Sequence[str | None]]
    where: str = "splits"

    def plan(self, name: str = "") -> Sequence[str | None]:
        """The splits in the order of `ids`; without a name those of the first plan."""
        name = name or next(iter(self.plans))
        if name not in self.plans:
            raise UsageError(self.where, f"there is no plan '{name}'.", suggestion(name, self.plans))
        return self.plans[name]

    def findings(self, ids: Iterable[str]) -> Iterator[Finding]:
        """What does not fit a corpus of these ids."""
        saved, given = set(self.ids), set(ids)
        action = "Save the splits again, or take the file that belongs to this corpus."
        for rule, names, problem in (
            ("split-for-unknown-id", saved - given, "of the file are not in the corpus"),
            ("id-without-split", given - saved, "of the corpus are not in the file, so they are in no split"),
        ):
            if names:
                shown = ", ".join(f"'{name}'" for name in islice(sorted(names), 3)) + (" …" if len(names) > 3 else "")
                text = f"{len(names)} utterances {problem}: {shown}."
                yield Finding(rule=rule, place=self.where, problem=text, action=action, is_error=False)


def save_splits(location: str, splits: Splits) -> None:
    """Writes the file whole or not at all; its name says the format."""
    table = pa.table(
        {"id": pa.array(splits.ids, pa.string())}
        | {name: pa.array(list(values), pa.string()) for name, values in splits.plans.items()}
    )

    def write(file: IO[bytes]) -> None:
        if _format_of(location) == "json":
            file.write(json.dumps(_as_json(splits), ensure_ascii=False, indent=1).encode())
        elif _format_of(location) == "csv":
            pacsv.write_csv(table, file)
        else:
            pq.write_table(table, file, compression="zstd")

    storage.write_whole(location, write)


def load_splits(location: str, plan: str = "") -> Splits:
    """Reads what `save_splits` wrote, or a file of the same form from elsewhere; all plans, or one."""
    kind = _format_of(location)
    with storage.open_binary(location) as file:
        try:
            if kind == "json":
                splits = _from_json(json.load(file), location)
            else:
                splits = _from_table(_read_parquet(file, plan) if kind == "parquet" else _read_csv(file), location)
        except (pa.ArrowException, ValueError) as error:
            problem = f"this is not a file of splits: {error}."
            raise ManifestError(location, problem, "Save the splits again.") from error
    if len(set(splits.ids)) < len(splits.ids):
        seen: set[str] = set()
        twice = next(name for name in splits.ids if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ManifestError(location, f"the id '{twice}' stands there twice.", "Keep one of the two.")
    return splits


def _format_of(location: str) -> str:
    extension = location.rpartition(".")[2].casefold()
    if extension not in ("parquet", "csv", "json"):
        raise UsageError(location, f"splits are not kept as '.{extension}'.", "Name it .parquet, .csv or .json.")
    return extension


def _read_parquet(file: IO[bytes], plan: str) -> pa.Table:
    names = pq.read_schema(file).names
    plan = plan or "split"  # a manifest has many columns; it stands for the splits of its first plan
    return pq.read_table(file, columns=["id", plan] if plan in names else names)


def _read_csv(file: IO[bytes]) -> pa.Table:
    names = pacsv.open_csv(file).schema.names
    file.seek(0)
    as_text = pacsv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    return pacsv.read_csv(file, convert_options=as_text)


def _from_table(table: pa.Table, where: str) -> Splits:
    names = [name for name in table.column_names if name != "id"]
    if len(names) == len(table.column_names) or not names:
        raise ManifestError(where, "a column 'id' and one for each plan are required.", "Name the columns so.")
    return Splits(table["id"].to_pylist(), {name: table[name].to_pylist() for name in names}, where)


def _as_json(splits: Splits) -> dict[str, dict[str, list[str]]]:
    plans: dict[str, dict[str, list[str]]] = {}
    for name, values in splits.plans.items():
        plans[name] = {split: [] for split in sorted({value for value in values if value is not None})}
        for id, split in zip(splits.ids, values, strict=True):
            if split is not None:
                plans[name][split].append(id)
    return plans


def _from_json(data: Any, where: str) -> Splits:
    plans = {"split": data} if isinstance(data, dict) and all(isinstance(ids, list) for ids in data.values()) else data
    if not plans or not isinstance(plans, dict) or not all(isinstance(plan, dict) for plan in plans.values()):
        raise ManifestError(where, "an object of splits is required.", 'Write {"train": ["id", …], "dev": […]}.')
    ids = dict.fromkeys(str(id) for plan in plans.values() for names in plan.values() for id in names)
    found: dict[str, list[str | None]] = {}
    for name, plan in plans.items():
        split_of: dict[str, str] = {}
        for split, names in plan.items():
            for id in map(str, names):
                if split_of.setdefault(id, split) != split:
                    problem = f"'{id}' is in '{split_of[id]}' and in '{split}'."
                    raise ManifestError(where, problem, "Keep it in one of the two.")
        found[name] = [split_of.get(id) for id in ids]
    return Splits(list(ids), found, where)
