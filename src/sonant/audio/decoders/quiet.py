"""Keeps libmpg123 from writing on the user's screen: it complains of every seek, although nothing is wrong."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

_CHATTER = re.compile(rb"^\n?(\[[^\]]*libmpg123|Warning: (Xing|Encountered|Real sample)|Note: )[^\n]*\n?", re.MULTILINE)
_lock = threading.Lock()
_num_inside = 0
_kept: tuple[int, IO[bytes]] | None = None  # the true standard error, and what is written meanwhile


@contextmanager
def without_chatter(is_expected: bool) -> Iterator[None]:
    """Holds back what is written to standard error, by whomever; all but the chatter is written afterwards."""
    if not is_expected:
        yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _num_inside, _kept  # noqa: PLW0603 the process has one standard error
    with _lock:
        _num_inside += 1
        if _kept is None:
            try:
                _kept = os.dup(2), tempfile.TemporaryFile()  # noqa: SIM115 closed by the last to leave
            except OSError:  # standard error is closed: nobody will see anything
                return
            os.dup2(_kept[1].fileno(), 2)


def _leave() -> None:
    global _num_inside, _kept  # noqa: PLW0603
    with _lock:
        _num_inside -= 1
        if _num_inside or _kept is None:
            return
        screen, held = _kept
        _kept = None
        os.dup2(screen, 2)
        os.close(screen)
        with held:
            held.seek(0)
            rest = _CHATTER.sub(b"", held.read())
        if rest:
            os.write(2, rest)
