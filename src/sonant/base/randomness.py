"""Every draw for data is a function of (seed, epoch, utterance id): never of worker, order or batch."""

from __future__ import annotations

import hashlib

import numpy as np


def stable_hash(*parts: object) -> int:
    """64 bits that are the same on every machine and in every process; Python's own hash is salted."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")


def generator_for(seed: int, epoch: int, utterance_id: str, purpose: str = "") -> np.random.Generator:
    """A fresh generator; `purpose` keeps the draws of one use from shifting those of another."""
    return np.random.default_rng(stable_hash(seed, epoch, utterance_id, purpose))


def uniform_for(seed: int, utterance_id: str, purpose: str = "") -> float:
    """One number in [0, 1) that belongs to this id for ever."""
    return (stable_hash(seed, utterance_id, purpose) >> 11) / 2**53  # more bits would be rounded up to 1
