"""Mean and variance of every feature over a corpus: gathered anywhere, added up, kept in wenet's or Kaldi's file.

total = CmvnStatistics.none(80)
for features in corpus:                        # (T, 80) each
    total += CmvnStatistics.of(features)       # and sums of other processes, in any order
write_cmvn(total, "global_cmvn.json")
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sonant.base import storage
from sonant.base.errors import SourceError, UsageError

LEAST_VARIANCE = 1e-20  # wenet's


@dataclass(frozen=True, eq=False)
class CmvnStatistics:
    """Sums over frames: float64, so that an hour or a year of them lose nothing that counts."""

    sums: np.ndarray  # (D,)
    squares: np.ndarray  # (D,)
    num_frames: int

    @classmethod
    def none(cls, width: int) -> CmvnStatistics:
        return cls(np.zeros(width), np.zeros(width), 0)

    @classmethod
    def of(cls, features: Any) -> CmvnStatistics:
        """Those of one utterance: (T, D), an array or a tensor on the CPU, without padding."""
        frames = np.asarray(features, np.float64)
        return cls(frames.sum(axis=0), np.square(frames).sum(axis=0), len(frames))

    def __add__(self, other: CmvnStatistics) -> CmvnStatistics:
        return CmvnStatistics(self.sums + other.sums, self.squares + other.squares, self.num_frames + other.num_frames)

    @property
    def mean(self) -> np.ndarray:
        if self.num_frames == 0:
            problem = "mean and variance were asked for, but not a single frame was seen."
            raise UsageError("CMVN statistics", problem, "Gather them over utterances that are longer than a frame.")
        return self.sums / self.num_frames

    @property
    def istd(self) -> np.ndarray:
        """One over the standard deviation."""
        variance = self.squares / max(self.num_frames, 1) - np.square(self.mean)
        istd: np.ndarray = 1 / np.sqrt(np.maximum(variance, LEAST_VARIANCE))
        return istd


def write_cmvn(statistics: CmvnStatistics, location: str) -> None:
    """JSON as wenet reads it where the name ends in .json, else text as Kaldi reads it."""
    text = _as_json(statistics) if location.endswith(".json") else _as_kaldi(statistics)
    storage.write_text(location, text)


def read_cmvn(location: str) -> CmvnStatistics:
    """Reads either form, told by what stands in the file."""
    content = storage.read_bytes(location)
    if b"\0B" in content[:256]:
        action = "Write it as text: copy-matrix --binary=false IN OUT (or matrix-sum --binary=false)."
        raise SourceError(location, "this is a binary Kaldi matrix; text or JSON is required.", action)
    try:
        text = content.decode("utf-8-sig").strip()
        statistics = _from_json(text) if text.startswith("{") else _from_kaldi(text)
    except (ValueError, KeyError, TypeError) as error:
        problem = f"these are no CMVN statistics: {_said(error)}."
        raise SourceError(location, problem, "Write wenet's JSON or the text of compute-cmvn-stats.") from error
    return _checked(statistics, location)


def _as_json(statistics: CmvnStatistics) -> str:
    return json.dumps(
        {
            "mean_stat": statistics.sums.tolist(),
            "var_stat": statistics.squares.tolist(),
            "frame_num": statistics.num_frames,
        }
    )


def _from_json(text: str) -> CmvnStatistics:
    values = json.loads(text)
    sums, squares = np.array(values["mean_stat"], float), np.array(values["var_stat"], float)
    return _of_rows(sums, squares, float(values["frame_num"]))


def _as_kaldi(statistics: CmvnStatistics) -> str:
    """Two rows: the sums and the number of frames, the sums of squares and a zero."""
    first = " ".join(map(repr, [*statistics.sums.tolist(), statistics.num_frames]))
    second = " ".join(map(repr, [*statistics.squares.tolist(), 0]))
    return f" [\n  {first}\n  {second} ]\n"


def _from_kaldi(text: str) -> CmvnStatistics:
    """The matrix, alone or behind its key in an archive."""
    _, opened, rest = text.partition("[")
    body, closed, left = rest.partition("]")
    if not opened or not closed or left.strip():
        raise ValueError("one matrix in brackets is required")
    numbers = np.array(body.split(), float)
    if len(numbers) < 4 or len(numbers) % 2:
        raise ValueError(f"two rows of equal length are required, {len(numbers)} numbers were found")
    first, second = numbers.reshape(2, -1)
    return _of_rows(first[:-1], second[:-1], first[-1])


def _of_rows(sums: np.ndarray, squares: np.ndarray, num_frames: float) -> CmvnStatistics:
    if sums.ndim != 1 or sums.shape != squares.shape or not sums.size:
        raise ValueError(f"{sums.size} sums and {squares.size} sums of squares do not belong together")
    return CmvnStatistics(sums, squares, round(num_frames))


def _checked(statistics: CmvnStatistics, location: str) -> CmvnStatistics:
    rows: Sequence[np.ndarray] = (statistics.sums, statistics.squares)
    if not all(np.isfinite(row).all() for row in rows) or (statistics.squares < 0).any():
        raise SourceError(location, "a sum is not finite, or a sum of squares negative.", "Compute the file again.")
    if statistics.num_frames < 1:
        raise SourceError(location, f"they are of {statistics.num_frames} frames.", "Compute the file over speech.")
    return statistics


def _said(error: Exception) -> str:
    return f"key {error} is missing" if isinstance(error, KeyError) else str(error).rstrip(".")
