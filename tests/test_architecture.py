"""The house stands as drawn: directions between rooms, sizes of files and functions, no torch where none may be."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "sonant"
FILES = sorted(PACKAGE.rglob("*.py"))

# Rooms that must never know each other, beyond what the floors forbid.
STRANGERS = [
    ("serving", "training"),
    ("evaluation", "training"),
    ("inference", "training"),
    ("training", "serving"),
    ("training", "evaluation"),
    ("training", "inference"),
]


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in the file, but for types alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize(("room", "stranger"), STRANGERS)
def test_training_and_answering_never_import_each_other(room, stranger):
    for path in (PACKAGE / room).rglob("*.py"):
        assert not [name for name in imported(path) if name.startswith(f"sonant.{stranger}")], path


@pytest.mark.parametrize(
    "module",
    [
        "sonant.cli.main",
        "sonant.cli.prepare",
        "sonant.cli.inspect",
        "sonant.corpus.preparation.run",
        "sonant.audio.waveform",
        "sonant.text.tokenizer",
    ],
)
def test_preparing_and_reading_never_load_torch(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_files_and_functions_stay_small_enough_to_be_read_at_once():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert max(lines.values()) <= 350, max(lines, key=lines.get)
    sizes = sorted(
        (node.end_lineno - node.lineno + 1, f"{path.name}:{node.lineno} {node.name}")
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert sizes[-1][0] <= 60, sizes[-1]
    assert statistics.median(size for size, _ in sizes) <= 10
    assert sizes[int(len(sizes) * 0.9)][0] <= 40


def test_every_file_begins_by_saying_its_idea():
    for path in FILES:
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_no_room_is_named_after_nothing():
    forbidden = {"utils", "helpers", "common", "core", "misc"}
    assert not [path for path in FILES if forbidden & {part.lower() for part in (*path.parts, path.stem)}]
