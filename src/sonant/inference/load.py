"""A bundle at work, whatever its task: what `sonant.load` gives."""

from __future__ import annotations

import importlib
from typing import Any

from sonant.checkpoints.bundle import BundleError, open_bundle

# By task: a module, and a class in it with `open(folder, device)`; only the one that is asked for is imported.
_ANSWERS = {
    "ctc": ("sonant.inference.transcriber", "Transcriber"),
    "seq2seq": ("sonant.inference.writing_transcriber", "WritingTranscriber"),
    "language": ("sonant.inference.scorer", "Scorer"),
}


def load(bundle: str, *, device: str = "cpu") -> Any:
    """What answers with a bundle: a recogniser (`Transcriber`, `WritingTranscriber`) transcribes, a language model
    (`Scorer`) scores and writes texts."""
    task = open_bundle(bundle).description.task
    if task not in _ANSWERS:
        known = " or ".join(f"'{name}'" for name in _ANSWERS)
        raise BundleError(bundle, f"nothing answers with a bundle of '{task}' yet.", f"Name a bundle of {known}.")
    module, name = _ANSWERS[task]
    return getattr(importlib.import_module(module), name).open(bundle, device)
