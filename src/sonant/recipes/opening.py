"""How a recogniser is opened: told once, done here or by workers elsewhere."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from sonant.base import config as configs
from sonant.base import storage
from sonant.checkpoints.bundle import DESCRIPTION, open_bundle
from sonant.decoding.decoder import DecodingConfig, decoding_values, in_words
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
        decoding = f"{in_words(self.decoding)} ({_mark(json.dumps(decoding_values(self.decoding)).encode())})"
        return _made_by(self.bundle, decoding, self.config)


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
        decoding = f"{writing_in_words(self.writing)} ({_mark(json.dumps(configs.to_dict(self.writing)).encode())})"
        return _made_by(self.bundle, decoding, self.config)


AnyOpening = Opening | WritingOpening


def _made_by(place: str, decoding: str, config: TranscriberConfig) -> dict[str, Any]:
    bundle = open_bundle(place)
    return {
        "recogniser": f"step {bundle.description.step} ({_mark(storage.read_bytes(bundle.path(DESCRIPTION)))})",
        "decoding": decoding,
        "answers": config.num_best,
        "windows": f"{config.window_seconds:g} s with {config.context_seconds:g} s of context",
        "voice activity": "not asked for" if config.detector is None else configs.to_dict(config.detector),
        "precision": config.precision,
    }


def _mark(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
