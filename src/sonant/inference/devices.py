"""Where a model works."""

from __future__ import annotations

import torch

from sonant.base.errors import UsageError


def check_device(name: str) -> None:
    """Refuses what is no device, and one that is not there."""
    kind, has_number, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (has_number and not number.isdigit()):
        raise UsageError("--device", f"'{name}' is not known.", "Choose cpu, cuda or one of several: cuda:1.")
    if kind == "cuda":
        count = torch.cuda.device_count()
        if int(number or 0) >= count:
            there = f"{count} are there" if count else "none is there that this torch can use"
            raise UsageError("--device", f"'{name}' was asked for, but {there}.", "Leave it out to use the processor.")
