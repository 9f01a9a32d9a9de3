"""How a recogniser is opened: told once, done here or by workers elsewhere."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from sonant.base import config as configs
from sonant.base import storage
from sonant.checkpoints.bundle import DESCRIPTION, WEIGHTS, open_bundle
from sonant.decoding.decoder import DecodingConfig, SearchConfig, decoding_values, in_words
from sonant.evaluation.table import fingerprint_of
from sonant.inference.decoding import Say, silent
from sonant.inference.transcriber import Transcriber, TranscriberConfig
from sonant.inference.writing import WritingConfig
from sonant.inference.writing_transcriber import WritingTranscriber
from sonant.recipes.seq2seq_decoding import writing_in_words


@dataclass(frozen=True, kw_only=True)
class Opening:
    bundle: str
    decoding: DecodingConfig
    device: str = "cpu"
    config: TranscriberConfig = field(default_factory=TranscriberConfig)

    def open(self, say: Say = silent) -> Transcriber:
        return Transcriber.open(self.bundle, self.device, self.config, self.decoding, say)

    def made_by(self) -> dict[str, Any]:
        """What texts depend on, for people to read and for programs to compare."""
        settings = json.dumps(decoding_values(self.decoding)) + fingerprint_of(*_companions(self.bundle, self.decoding))
        return _made_by(self.bundle, f"{in_words(self.decoding)} ({_mark(settings)})", self.config)


@dataclass(frozen=True, kw_only=True)
class WritingOpening:
    """The same for a recogniser that writes token by token."""

    bundle: str
    writing: WritingConfig
    device: str = "cpu"
    config: TranscriberConfig = field(default_factory=TranscriberConfig)

    def open(self, say: Say = silent) -> WritingTranscriber:
        return WritingTranscriber.open(self.bundle, self.device, self.config, self.writing)

    def made_by(self) -> dict[str, Any]:
        settings = json.dumps(configs.to_dict(self.writing))
        return _made_by(self.bundle, f"{writing_in_words(self.writing)} ({_mark(settings)})", self.config)


AnyOpening = Opening | WritingOpening


def _made_by(place: str, decoding: str, config: TranscriberConfig) -> dict[str, Any]:
    bundle = open_bundle(place)
    return {
        "recogniser": f"step {bundle.description.step} ({fingerprint_of(bundle.path(WEIGHTS))})",
        "decoding": decoding,
        "answers": config.num_best,
        "windows": f"{config.window_seconds:g} s with {config.context_seconds:g} s of context",
        "voice activity": "not asked for" if config.detector is None else configs.to_dict(config.detector),
        "precision": config.precision,
    }


def _companions(bundle: str, config: DecodingConfig) -> list[str]:
    """The files that a decoding names: under the same name there may be other n-grams tomorrow."""
    if not isinstance(config, SearchConfig):
        return []
    files = [name for name in (config.ngram, config.lexicon) if name]
    if config.rescorer:
        files += [storage.join(config.rescorer, name) for name in (WEIGHTS, DESCRIPTION)]
    return [storage.join(bundle, name) for name in files]


def _mark(settings: str) -> str:
    return hashlib.sha256(settings.encode()).hexdigest()[:8]
