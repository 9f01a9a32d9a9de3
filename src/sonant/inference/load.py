"""A bundle at work, whatever its task: what `sonant.load` gives."""

from __future__ import annotations

from sonant.checkpoints.bundle import BundleError, open_bundle
from sonant.inference.scorer import Scorer


def load(bundle: str, *, device: str = "cpu") -> Scorer:
    """What answers with a bundle: a language model scores and writes texts."""
    task = open_bundle(bundle).description.task
    if task == "language":
        return Scorer.open(bundle, device)
    raise BundleError(bundle, f"nothing answers with a bundle of '{task}' yet.", "Name a bundle of a language model.")
