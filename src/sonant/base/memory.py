"""Memory that a process has once had stays with it, instead of going back to the system after each tensor.

The C library gives large blocks back the moment they are freed, and the system hands them out again page by page,
each cleared and with a fault. A training step frees and asks for the same sizes every time: on a CPU up to a third of
it went into that.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MOST_MAPPED = -1, -4  # names of malloc.h: M_TRIM_THRESHOLD, M_MMAP_MAX
_NEVER = (1 << 31) - 1


def keep_freed_memory() -> bool:
    """From now on; says whether this C library can (glibc does, others do as they like)."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MOST_MAPPED, 0)) and bool(mallopt(_TRIM_THRESHOLD, _NEVER))
