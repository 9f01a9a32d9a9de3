"""What frozen parts of a recogniser make of recordings is computed once: later epochs, seeds and runs skip it.

Kept is what the deepest part gives that is the same each time: the front end, and as many layers behind it as are
frozen for the whole run, nothing being drawn on the way.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

import sonant
from sonant.base import config as configs
from sonant.base.errors import ConfigError
from sonant.batches.collate import collate_speech
from sonant.batches.examples import SpeechExamples
from sonant.batches.heard import BYTES, HeardExamples, collate_heard, fingerprint
from sonant.batches.store import Store, StoreConfig
from sonant.corpus.manifest import Corpus
from sonant.models.conformer import Conformer
from sonant.models.twins import Hearing
from sonant.recipes.freezing import FRONT_ENDS

if TYPE_CHECKING:
    from sonant.recipes.recognition import RecognitionConfig

_CONVOLUTIONS = ("conv_dim", "conv_kernel", "conv_stride", "conv_bias", "feat_extract_norm")
_SETTINGS = ("model_type", *_CONVOLUTIONS, "num_mel_bins", "max_source_positions")
_BEHIND = ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id", "final_dropout", "num_layers", "dtype")
_SPARE = 1.1  # segments of the store are never quite full


def heard_once(
    config: RecognitionConfig,
    model: Any,
    examples: SpeechExamples,
    corpora: Sequence[Corpus],
    say: Callable[[str], None],
) -> tuple[Any, Callable[..., Any]]:
    """What makes examples, and what lays them side by side: from the store where that is possible and wanted."""
    plain = examples, collate_speech
    if config.keep_heard == "off":
        return plain
    if reason := _reason_against(config, model):
        if config.keep_heard == "auto":
            return plain
        raise ConfigError("keep_heard", f"what is heard changes from time to time: {reason}.", "Write off.")
    num_layers, reason = frozen_layers(model, is_hiding=bool(config.objective.hiding))
    if reason:
        say(f"frozen layers are gone through again in each epoch, since {reason}")
    folder = _cache() if config.keep_heard == "auto" else config.keep_heard
    store = Store(folder, StoreConfig(max_bytes=int(config.keep_heard_gb * 1e9)))
    hear = Hearing(model, num_layers, in_bf16=config.trainer.precision == "bf16")
    precision = config.keep_heard_precision
    size = _bytes_of(corpora, model, num_layers, hear) * BYTES[precision]
    if reason := _too_large(size, store):
        if config.keep_heard == "auto":
            say(f"what is heard is not kept: {reason}")
            return plain
        raise ConfigError("keep_heard_gb", f"{reason}.", "Raise it, make room, or write keep_heard=off.")
    say(f"what {_told(model, num_layers)} of recordings is computed once and kept: {size / 1e9:.2g} GB in {folder}")
    weights = fingerprint(tensor.detach().cpu().numpy().tobytes() for _, tensor in hearing(model, num_layers))
    settings = fingerprint([_settings(model, num_layers).encode(), b"bf16" if hear.in_bf16 else b"fp32"])
    made = HeardExamples(examples, store, hear, settings, weights, num_layers=num_layers, precision=precision)
    return made, collate_heard


def frozen_layers(model: Any, *, is_hiding: bool) -> tuple[int | None, str]:
    """How many layers give the same each time (None: only the front end does), and why not all that are frozen."""
    frozen = [number for number in range(1, model.num_layers + 1) if not _learning(model, number)]
    if not frozen:
        before, learning = _learning(model, 0), _learning(model, 1)
        return None, f"'{before[0]}' in front of them learns" if before == learning else ""
    if is_hiding:
        return None, "objective.hiding hides what they are given"
    if model.drawn:
        return None, f"{model.drawn} is above 0"
    return max(frozen), ""


def hearing(model: Any, num_layers: int | None) -> list[tuple[str, Tensor]]:
    """The weights that hear: of the front end, or of it and so many layers."""
    entries = model.state_dict().items()
    if num_layers is None:
        return [pair for pair in entries if any(fnmatchcase(pair[0], f"{front_end}.*") for front_end in FRONT_ENDS)]
    return [pair for pair in entries if not pair[0].startswith(model.behind(num_layers))]


def _reason_against(config: RecognitionConfig, model: Any) -> str:
    if config.augmentations:
        return "waveforms are augmented"
    if _learning(model, None):
        return "the front end learns"
    if isinstance(model, Conformer) and model.config.front_end.dither:
        return "the front end adds noise"
    return ""


def _learning(model: Any, num_layers: int | None) -> list[str]:
    """The parameters among those that hear which learn, if only later."""
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return [name for name, _ in hearing(model, num_layers) if name in learning]


def _settings(model: Any, num_layers: int | None) -> str:
    """All else that what is heard depends on; another version of the code may hear otherwise."""
    is_own = isinstance(model, Conformer)
    if num_layers is not None:
        values = configs.to_dict(model.config) if is_own else model.config.to_dict()
        values = {name: value for name, value in values.items() if name not in _BEHIND and name[0] != "_"}
    elif is_own:
        values = configs.to_dict(model.config.front_end)
    else:
        values = {name: getattr(model.config, name, None) for name in _SETTINGS}
    values |= {"normalizes": getattr(model, "normalizes", None), "sonant": sonant.__version__}
    return json.dumps(values, sort_keys=True, default=str)


def _bytes_of(corpora: Sequence[Corpus], model: Any, num_layers: int | None, hear: Hearing) -> int:
    """The numbers that there are to keep."""
    width = hear(np.zeros(model.sample_rate, np.float32)).shape[1]
    count = model.num_heard if num_layers is None else model.num_inside
    return sum(int(count((corpus.seconds * model.sample_rate).astype(np.int64)).sum()) * width for corpus in corpora)


def _too_large(size: int, store: Store) -> str:
    needed, limit = f"{size / 1e9:.2g} GB are needed", store.config.max_bytes
    if size * _SPARE > limit:
        return f"{needed}, keep_heard_gb is {limit / 1e9:g}"
    free = shutil.disk_usage(store.folder).free + store.stats.num_bytes
    return f"{needed}, {free / 1e9:.2g} GB are free in {store.folder}" if size * _SPARE > free else ""


def _told(model: Any, num_layers: int | None) -> str:
    if num_layers is None:
        return "the front end makes"
    return f"the front end and {num_layers} of {model.num_layers} layers make"


def _cache() -> str:
    return os.path.join(os.environ.get("SONANT_CACHE") or os.path.expanduser("~/.cache/sonant"), "heard")
