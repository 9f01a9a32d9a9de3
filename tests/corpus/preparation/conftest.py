"""A folder of recordings with a table, made for a test, and the product's own command on it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import sonant
from sonant.corpus.preparation.run import PrepareResult

RATE = 8000
_SENTENCES = list(permutations(["go", "on", "so", "no", "do"]))  # different, of the same few characters


@dataclass(frozen=True)
class Laid:
    """A folder of sound utterances `a0`, `a1` …, each half a second of another voice saying something else."""

    folder: Path
    voiced: Callable[..., np.ndarray]
    rows: list[dict[str, str]]

    def speech(self, seconds: float = 0.5, *, seed: int = 99) -> np.ndarray:
        return self.voiced(seconds, RATE, seed=seed, pitch=90 + seed % 200)

    def write(self, name: str, samples: np.ndarray, sample_rate: int = RATE, **options: Any) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, samples, sample_rate, **options)
        return path

    def add(self, audio: str, samples: np.ndarray | None = None, **cells: str) -> None:
        """One more row, with its recording if samples are given."""
        if samples is not None:
            self.write(audio, samples)
        said = " ".join(_SENTENCES[len(self.rows) % len(_SENTENCES)])
        self.rows.append({"audio": audio, "text": said, "speaker": f"s{len(self.rows) % 4}", **cells})

    def table(self, name: str = "table.csv", **options: Any) -> str:
        """Writes the rows; gives the location."""
        columns = list(dict.fromkeys(column for row in self.rows for column in row))
        with open(self.folder / name, "w", encoding=options.pop("encoding", "utf-8"), newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n", **options)
            writer.writeheader()
            writer.writerows(self.rows)
        return str(self.folder / name)


@pytest.fixture
def lay(tmp_path, voiced) -> Callable[..., Laid]:
    """Makes a folder of so many sound utterances."""

    def make(count: int = 8, name: str = "set") -> Laid:
        laid = Laid(tmp_path / name, voiced, [])
        laid.folder.mkdir()
        for number in range(count):
            laid.add(f"a{number}.wav", laid.speech(seed=number))
        return laid

    return make


@pytest.fixture
def prepared(tmp_path) -> Callable[..., PrepareResult]:
    """`sonant.prepare` into a folder of this test, in this process unless workers are asked for."""

    def prepare(source: str | Iterable[str], /, corpus: str = "corpus", **fields: Any) -> PrepareResult:
        config = replace(sonant.PrepareConfig(workers=1), **fields)
        return sonant.prepare(source if isinstance(source, str) else list(source), str(tmp_path / corpus), config)

    return prepare


@pytest.fixture
def listed(tmp_path) -> Callable[..., list[Mapping[str, str]]]:
    """The lines of a list that preparation wrote: findings.csv or rejected.csv."""

    def read(name: str, corpus: str = "corpus") -> list[Mapping[str, str]]:
        with open(tmp_path / corpus / name, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return read
