"""A corpus whose utterances are noise of one second or so, with texts of chance: what is learnt does not matter."""

from __future__ import annotations

import csv
from collections.abc import Callable

import numpy as np
import soundfile

import sonant


def corpus_of_noises(
    tmp_path_factory, count: int, text_of: Callable[[np.random.Generator], str], dev: range = range(2)
) -> str:
    """`dev` numbers the utterances that are not learnt from."""
    folder, rng = tmp_path_factory.mktemp("recordings"), np.random.default_rng(0)
    with open(folder / "recordings.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["path", "text", "split"])
        for number in range(count):
            soundfile.write(folder / f"{number}.wav", 0.1 * rng.standard_normal(rng.integers(12000, 24000)), 16000)
            table.writerow([f"{number}.wav", text_of(rng), "dev" if number in dev else "train"])
    place = str(tmp_path_factory.mktemp("corpora") / "noises")
    sonant.prepare(str(folder), place, sonant.PrepareConfig(workers=1))
    return place
