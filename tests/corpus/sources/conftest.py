"""Folders of somebody's, laid out for a test. Sources never decode, so that a recording is an empty file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.registry import open_source
from sonant.corpus.utterance import Finding, Utterance


@pytest.fixture
def lay(tmp_path) -> Callable[..., str]:
    """Writes files below a fresh folder, text as UTF-8, and gives the folder."""

    def write(files: Mapping[str, str | bytes] | None = None, /, audio: str = "") -> str:
        folder = tmp_path / "set"
        folder.mkdir(exist_ok=True)
        for name, content in {**(files or {}), **dict.fromkeys(audio.split(), b"")}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(folder)

    return write


@pytest.fixture
def read() -> Callable[..., tuple[list[Utterance], list[Finding]]]:
    """All utterances and all findings of a location, its layout recognised unless told."""

    def rows(location: str, **options) -> tuple[list[Utterance], list[Finding]]:
        found = list(open_source(location, SourceOptions(**options)).rows())
        return [row for row in found if isinstance(row, Utterance)], [row for row in found if isinstance(row, Finding)]

    return rows
