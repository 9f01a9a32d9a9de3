"""What benchmarks stand on: real speech that lies beside the checkout, fair timing, honest memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SHARED = Path(os.environ.get("SONANT_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def speech() -> Path:
    """The folder of real recordings; without it there is nothing to measure on."""
    if not (SHARED / "data").is_dir():
        sys.exit(f"bench: real recordings are not at hand (SONANT_SHARED={SHARED}); nothing was measured")
    return SHARED / "data"


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def processor_seconds(work: Callable[[], object]) -> float:
    """What all processors together were busy with it, children included: the same on a busy machine."""

    def used() -> float:
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system

    before = used()
    work()
    return used() - before


def interleaved(sides: dict[str, Callable[[], object]], pairs: int = 5) -> dict[str, list[float]]:
    """Seconds of each side, taken in turns, so that a busy minute of the machine hits all of them."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(pairs):
        for name, work in sides.items():
            taken[name].append(seconds_of(work))
    return taken


def median(values: list[float]) -> float:
    return statistics.median(values)


def spread(values: list[float]) -> str:
    """Median and range, as tables show them."""
    return f"{median(values):.3f} s ({min(values):.3f} to {max(values):.3f})"


def matrix_rate(precision: str) -> float:
    """GFLOP/s of a large product of a convolution, by the faster of torch's two ways."""
    import torch
    import torch.nn.functional as F

    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    a, b = (torch.randn(shape).to(dtype) for shape in ((8192, 768), (256, 768)))
    rows = a.view(1, -1, 1, 768).permute(0, 3, 1, 2)
    ways: list[Callable[[], object]] = [lambda: F.linear(a, b), lambda: F.conv2d(rows, b[:, :, None, None])]
    rates = [2 * 8192 * 768 * 256 / min(seconds_of(way) for _ in range(15)) / 1e9 for way in ways]
    print(f"{precision}: products at {rates[0]:.0f} GFLOP/s as a linear layer, {rates[1]:.0f} as a 1 × 1 convolution")
    return max(rates)


def bytes_below(folder: Path) -> int:
    """What lies on disk below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def peak_megabytes(script: str, *arguments: object) -> float:
    """The largest resident size of a fresh process that runs a script with arguments, its children included."""
    probe = (
        "import resource, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__');"
        "print(max(resource.getrusage(w).ru_maxrss for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))"
    )
    command = [sys.executable, "-c", probe, script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1024
