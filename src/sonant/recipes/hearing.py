"""Whether what a front end hears is kept, so that later epochs, seeds and runs skip it: where nothing of it learns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sonant.base import config as configs
from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths
from sonant.batches.collate import collate_speech
from sonant.batches.examples import SpeechExamples
from sonant.batches.heard import HeardExamples, collate_heard, fingerprint
from sonant.batches.store import Store
from sonant.models.conformer import Conformer
from sonant.recipes.freezing import FRONT_ENDS

if TYPE_CHECKING:
    from sonant.recipes.ctc import Config

_SETTINGS = ("model_type", "conv_dim", "conv_kernel", "conv_stride", "conv_bias", "feat_extract_norm", "num_mel_bins")


def heard_once(config: Config, model: Any, examples: SpeechExamples) -> tuple[Any, Callable[..., Any]]:
    """What makes examples, and what lays them side by side: from the store where that is possible and wanted."""
    plain = examples, collate_speech
    if config.keep_heard == "off":
        return plain
    if reason := _reason_against(config, model):
        if config.keep_heard == "auto":
            return plain
        raise ConfigError("keep_heard", f"what is heard changes from time to time: {reason}.", "Write off.")
    folder = _cache() if config.keep_heard == "auto" else config.keep_heard
    weights = fingerprint(*(parameter.detach().numpy().tobytes() for _, parameter in _front_end(model)))
    made = HeardExamples(examples, Store(folder), _hearing(model), fingerprint(_settings(model).encode()), weights)
    return made, collate_heard


def _reason_against(config: Config, model: Any) -> str:
    if config.augmentations:
        return "waveforms are augmented"
    if any(parameter.requires_grad for _, parameter in _front_end(model)):
        return "the front end learns"
    if isinstance(model, Conformer) and model.config.front_end.dither:
        return "the front end adds noise"
    return ""


def _front_end(model: Any) -> list[tuple[str, Any]]:
    """The parameters that hear."""
    return [
        (name, parameter)
        for name, parameter in model.named_parameters()
        if any(fnmatchcase(name, f"{front_end}.*") for front_end in FRONT_ENDS)
    ]


def _settings(model: Any) -> str:
    """All else that what is heard depends on."""
    if isinstance(model, Conformer):
        return json.dumps(configs.to_dict(model.config.front_end), sort_keys=True)
    values = {name: getattr(model.config, name, None) for name in _SETTINGS}
    return json.dumps(values | {"normalizes": getattr(model, "normalizes", None)}, sort_keys=True)


def _hearing(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    def hear(samples: np.ndarray) -> np.ndarray:
        device = next(model.parameters()).device
        lengths = Lengths(torch.tensor([len(samples)], device=device))
        with torch.no_grad():
            heard = model.hear(torch.from_numpy(samples)[None].to(device), lengths)
        frames: np.ndarray = heard.frames[0].float().cpu().numpy()
        return frames

    return hear


def _cache() -> str:
    return os.path.join(os.environ.get("SONANT_CACHE") or os.path.expanduser("~/.cache/sonant"), "heard")
