"""Reads the numbers that other people's programs made, without their packages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

_DTYPES = {"F32": np.float32, "I64": np.int64, "BOOL": np.bool_}


@pytest.fixture
def golden(shared: Path) -> Callable[[str], dict[str, np.ndarray]]:
    """golden("beats/beats.vectors") gives the arrays of that safetensors file by name."""

    def read(name: str) -> dict[str, np.ndarray]:
        content = (shared / "golden" / f"{name}.safetensors").read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        entries = json.loads(content[8:start])
        entries.pop("__metadata__", None)
        return {key: _array(content[start:], **entry) for key, entry in entries.items()}

    return read


def _array(content: bytes, dtype: str, shape: list[int], data_offsets: list[int]) -> np.ndarray:
    return np.frombuffer(content[slice(*data_offsets)], _DTYPES[dtype]).reshape(shape).copy()
