"""Sonant trains speech models from people's own recordings and serves exactly what it trained."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sonant.corpus.manifest import Corpus as Corpus
    from sonant.corpus.manifest import open_corpus as open_corpus
    from sonant.corpus.preparation.config import PrepareConfig as PrepareConfig
    from sonant.corpus.preparation.run import prepare as prepare
    from sonant.inference.load import load as load
    from sonant.recipes.evaluate import evaluate as evaluate
    from sonant.recipes.train import train as train

__version__ = "0.1.0"

_HOMES = {
    "Corpus": "sonant.corpus.manifest",
    "PrepareConfig": "sonant.corpus.preparation.config",
    "evaluate": "sonant.recipes.evaluate",
    "load": "sonant.inference.load",
    "open_corpus": "sonant.corpus.manifest",
    "prepare": "sonant.corpus.preparation.run",
    "train": "sonant.recipes.train",
}
__all__ = ["Corpus", "PrepareConfig", "__version__", "evaluate", "load", "open_corpus", "prepare", "train"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sonant' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
