"""The folder that results are written to, file by file: what is there is known, and what made it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sonant.base import storage
from sonant.base.errors import UsageError
from sonant.inference.transcriber import Failure

FAILURES = "failures.csv"
_MADE_BY = ".made-by.json"
_AT_ONCE, _AHEAD = 8, 64  # files: each takes a disk 10 ms to be sure of, a bucket 50
_UNFINISHED = re.compile(r"\.(.+)\.[^.]{8}\.part$")  # what a killed write leaves beside the file


class OutFolder:
    """Lists the folder once, shows at the start whether it can be written to, and writes several files at once."""

    def __init__(self, folder: str, made_by: Mapping[str, Any], *, again: bool = False) -> None:
        self.folder, self._is_again = folder, again
        self._there: set[str] = set()
        self._left: dict[str, list[str]] = defaultdict(list)
        if storage.exists(folder) and not storage.is_folder(folder):
            raise UsageError("--out", f"{folder} is a file, a folder is needed.", "Name a folder, new or old.")
        for file in storage.list_files(folder):
            self._there.add(_plain(file))
            if unfinished := _UNFINISHED.match(os.path.basename(file)):
                self._left[_plain(storage.join(storage.parent(file), unfinished[1]))].append(file)
        self._check_maker(made_by)
        self._writers, self._writing = ThreadPoolExecutor(_AT_ONCE), deque[Future[None]]()

    def has(self, name: str, kinds: Sequence[str]) -> bool:
        """All of these results of a recording need not be made."""
        return not self._is_again and all(_plain(result_file(self.folder, name, kind)) in self._there for kind in kinds)

    def write(self, name: str, kind: str, text: str) -> None:
        self._put(result_file(self.folder, name, kind), text)

    def write_soon(self, name: str, kind: str, text: str) -> None:
        """Goes on while the file is written; what is wrong with one is raised by a later one, or by `finish`."""
        self._writing.append(self._writers.submit(self.write, name, kind, text))
        while len(self._writing) > _AHEAD:
            self._writing.popleft().result()

    def finish(self) -> None:
        """Everything is written when this returns."""
        self._writers.shutdown()
        while self._writing:
            self._writing.popleft().result()

    def write_failures(self, failures: Iterable[Failure]) -> None:
        """A table of them; without any there is none."""
        rows = [[one.audio, f"{one.error.where}: {one.error.problem}", one.error.action] for one in failures]
        where = storage.join(self.folder, FAILURES)
        if rows:
            text = io.StringIO()
            csv.writer(text).writerows([["recording", "problem", "action"], *rows])
            self._put(where, text.getvalue())
        elif _plain(where) in self._there:
            storage.remove(where)

    def _check_maker(self, made_by: Mapping[str, Any]) -> None:
        """Texts of two recognisers in one folder could not be told apart."""
        where = storage.join(self.folder, _MADE_BY)
        if not self._is_again and _plain(where) in self._there:
            before = _read(where)
            for key, value in made_by.items():
                if key in before and before[key] != value:
                    problem = f"what lies there was made with {key} = {before[key]}, and now it is {value}."
                    raise UsageError(self.folder, problem, "Choose another folder, or make all of it anew: --again.")
        self._put(where, json.dumps(dict(made_by), ensure_ascii=False, indent=2) + "\n")

    def _put(self, where: str, text: str) -> None:
        """In place of what a killed run left unfinished."""
        storage.write_text(where, text)
        for file in self._left.pop(_plain(where), []):
            storage.remove(file)


def result_file(folder: str, name: str, kind: str) -> str:
    """Where the result of a recording is written."""
    return storage.join(folder, f"{name.lstrip('/')}.{kind}")


def _read(where: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(storage.read_bytes(where))
    except ValueError:
        return {}
    return found


def _plain(location: str) -> str:
    return location if storage.is_remote(location) else os.path.abspath(location)
