"""A small real corpus, in a folder, for every test that reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import soundfile

from sonant.corpus.manifest import Corpus, schema_for


def make_corpus(folder: Path, seconds: list[float], voiced: Callable[..., np.ndarray], *, first: int = 0) -> Corpus:
    """One recording an utterance, each with its text, speaker and two labels, one of them missing at times."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, length in enumerate(seconds, start=first):
        samples = voiced(length, seed=number, pitch=100 + number % 50)
        soundfile.write(folder / f"{number}.wav", samples, 16000, subtype="PCM_16")
        rows.append(
            {
                "id": f"u{number}",
                "audio": f"{number}.wav",
                "start": 0.0,
                "seconds": len(samples) / 16000,
                "sample_rate": 16000,
                "text": f"word {number}",
                "speaker": f"s{number % 3}",
                "labels": {"age": None if number % 4 == 3 else float(number), "mood": "glad"},
            }
        )
    labels = {"age": "number", "mood": "string"}
    return Corpus(
        str(folder), pa.Table.from_pylist(rows, schema_for(labels, {}, with_tokens=False)), {"labels": labels}
    )


@pytest.fixture(scope="session")
def seconds() -> list[float]:
    """Durations of 40 utterances, from 0.2 to 2 s."""
    return [round(float(value), 2) for value in np.random.default_rng(0).uniform(0.2, 2.0, 40)]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, voiced, seconds) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("corpus"), seconds, voiced)


@pytest.fixture
def new_corpus(tmp_path, voiced) -> Callable[..., Corpus]:
    """Makes a corpus that a test may harm."""
    return lambda seconds, name="corpus", first=0: make_corpus(tmp_path / name, seconds, voiced, first=first)
