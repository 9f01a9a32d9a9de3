"""How much memory a process may take before something else ends it."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_LIMITS = ("memory.max", "memory.limit_in_bytes")  # of both generations of control groups
_USED = ("memory.current", "memory.usage_in_bytes")
_CACHE = ("inactive_file", "total_inactive_file")  # counted as used, but given back when asked for


def allowed_bytes() -> int:
    """What this process may hold in all: by the machine, by its control groups, by its own limits."""
    own = resident_bytes(os.getpid())
    found = [_available_bytes() + own, *(left + own for left in _left_in_groups())]
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY:
            found.append(soft)
    return min(found)


def resident_bytes(process: int) -> int:
    """What a process holds in memory now; 0 once it is gone."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    return 0


def peak_bytes() -> int:
    """The most that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _left_in_groups() -> Iterator[int]:
    """What each control group around this process still has to give."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, inner = line.split(":", 2)
            if controllers in ("", "memory"):
                root = _CGROUPS / controllers if controllers else _CGROUPS
                folder = root / inner.lstrip("/")
                for group in (folder, *folder.parents):
                    if group.is_relative_to(root) and (left := _left_in(group)) is not None:
                        yield left


def _left_in(group: Path) -> int | None:
    for limit, used in zip(_LIMITS, _USED, strict=True):
        with suppress(OSError, ValueError):  # "max" is no number
            left = int((group / limit).read_text()) - int((group / used).read_text())
            return left + _cached_in(group)
    return None


def _cached_in(group: Path) -> int:
    with suppress(OSError, ValueError):
        facts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return max(int(facts.get(name, 0)) for name in _CACHE)
    return 0
