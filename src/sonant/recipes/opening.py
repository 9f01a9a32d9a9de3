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
        bundle, config = open_bundle(self.bundle), self.config
        return {
            "recogniser": f"step {bundle.description.step} ({_mark(storage.read_bytes(bundle.path(DESCRIPTION)))})",
            "decoding": f"{in_words(self.decoding)} ({_mark(json.dumps(decoding_values(self.decoding)).encode())})",
            "answers": config.num_best,
            "windows": f"{config.window_seconds:g} s with {config.context_seconds:g} s of context",
            "voice activity": "not asked for" if config.detector is None else configs.to_dict(config.detector),
            "precision": config.precision,
        }


def _mark(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
