"""Freed memory stays where it is asked to stay."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sonant.base.memory import keep_freed_memory

SCRIPT = """
import resource, sys
import numpy as np
from sonant.base.memory import keep_freed_memory
if sys.argv[1] == "keep" and not keep_freed_memory():
    print(-1)
    sys.exit()
np.ones(1 << 22)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(1 << 22)  # 32 MB
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_memory_that_is_kept_is_not_asked_for_again():
    kept = faults("keep")
    if kept < 0:
        pytest.skip("this C library does as it likes")
    assert kept < faults("free") / 10


def test_it_may_be_asked_twice():
    assert keep_freed_memory() == keep_freed_memory()
