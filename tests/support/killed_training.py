"""A training in a process of its own that ends itself by SIGKILL at a chosen moment of its work on files."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch
from small_training import main

WRITING = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
PLACES = ("states", "bundle", "averages")


def started(place: Path, words: list[str], kill_event: int = -1, ranks: dict[str, str] | None = None) -> None:
    """Trains; at the n-th thing that it does to states and bundles it is killed. Otherwise it counts them."""
    os.environ.update(ranks or {})
    count = 0

    def look(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event in WRITING and any(f"{place.name}/" in str(a) and any(p in str(a) for p in PLACES) for a in arguments):
            count += 1
            if count == kill_event:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)
    torch.set_num_threads(1)
    code = main([str(place), *words])
    if kill_event < 0:
        Path(f"{place}.events").write_text(str(count))
    os._exit(code)
