"""A dictionary of integers that is asked a thousand keys at once: open addressing, vectorised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbours land far apart
_EMPTY = np.int64(-1)


@dataclass(frozen=True, eq=False)
class IntegerTable:
    """Finds the place of each key in the array that it was built from; at least half of its slots are empty."""

    keys: np.ndarray  # (slots,) int64, -1 where empty; slots are a power of two
    places: np.ndarray  # (slots,) int32

    def find(self, keys: np.ndarray) -> np.ndarray:
        """The place of each key (N,), -1 where there is none."""
        slots = _first_slots(keys, len(self.keys))
        last = len(self.keys) - 1
        stored = self.keys.take(slots)
        places = self.places.take(slots)
        astray = np.flatnonzero((stored != keys) & (stored != _EMPTY))
        while astray.size:
            slots[astray] = following = (slots[astray] + 1) & last
            stored[astray] = met = self.keys.take(following)
            places[astray] = self.places.take(following)
            astray = astray[(met != keys[astray]) & (met != _EMPTY)]
        places[stored != keys] = -1
        return places


def build_table(keys: np.ndarray) -> IntegerTable:
    """From distinct keys of 0 or more (N,): all try their slot at once, those that lose it to another the next one."""
    keys = np.ascontiguousarray(keys, np.int64)
    num_slots = 1 << max(3, int(2 * len(keys)).bit_length())
    stored, places = np.full(num_slots, _EMPTY), np.full(num_slots, -1, np.int32)
    waiting, slots = np.arange(len(keys)), _first_slots(keys, num_slots)
    while waiting.size:
        is_free = stored[slots] == _EMPTY
        stored[slots[is_free]] = keys[waiting[is_free]]  # the last writer wins the slot
        has_won = stored[slots] == keys[waiting]
        places[slots[has_won]] = waiting[has_won]
        waiting, slots = waiting[~has_won], (slots[~has_won] + 1) & (num_slots - 1)
    return IntegerTable(stored, places)


def _first_slots(keys: np.ndarray, num_slots: int) -> np.ndarray:
    shift = np.uint64(64 - (num_slots.bit_length() - 1))
    return ((keys.astype(np.uint64) * _MULTIPLIER) >> shift).astype(np.int64)
