"""Folders that a pretraining goes on from: a bundle of ours, or a wav2vec 2.0 that `transformers` saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sonant.base import storage
from sonant.base.config import from_dict
from sonant.base.errors import AbsentError, SonantError
from sonant.checkpoints.bundle import DESCRIPTION, WEIGHTS, open_bundle
from sonant.checkpoints.tensors import read_tensors
from sonant.checkpoints.wav2vec2_weights import (
    from_transformers,
    own_weights,
    preprocessor_config,
    pretraining_config,
    transformers_config,
)
from sonant.models.wav2vec2 import Wav2Vec2Config
from sonant.models.wav2vec2_pretraining import Wav2Vec2PretrainingConfig

_CONFIG, _PREPROCESSOR, _OLD_WEIGHTS = "config.json", "preprocessor_config.json", "pytorch_model.bin"


def read_wav2vec2(folder: str) -> tuple[Wav2Vec2PretrainingConfig, dict[str, Tensor]]:
    """The architecture and whatever weights of it the folder has, under our names."""
    if storage.exists(storage.join(folder, DESCRIPTION)):
        bundle = open_bundle(folder)
        bundle.require_task("pretrain")
        values = bundle.description.config
        named = values if bundle.description.architecture == "wav2vec2" else {"encoder": values["encoder"]}
        config = from_dict(Wav2Vec2PretrainingConfig, named, bundle.path(DESCRIPTION))
        return config, own_weights(read_tensors(bundle.path(WEIGHTS)), values)
    where = storage.join(folder, _CONFIG)
    values = _read_json(where)
    if values.get("model_type") != "wav2vec2":
        problem = f"its model_type is {values.get('model_type')!r}, 'wav2vec2' is required."
        raise SonantError(where, problem, "Name a folder with a wav2vec 2.0.")
    listening = storage.join(folder, _PREPROCESSOR)
    normalizes = _read_json(listening).get("do_normalize", True) if storage.exists(listening) else True
    config = pretraining_config(values, where, normalize=normalizes)
    return config, from_transformers(_tensors(folder), config.quantizer.num_groups)


def wav2vec2_files(config: Wav2Vec2PretrainingConfig | None, encoder: Wav2Vec2Config) -> dict[str, str]:
    """What makes a bundle a folder of `transformers` too; without a config it loads as a bare `Wav2Vec2Model`."""
    values = transformers_config(config or Wav2Vec2PretrainingConfig(encoder=encoder)) | (
        {} if config else {"architectures": ["Wav2Vec2Model"]}
    )
    return {_CONFIG: _written(values), _PREPROCESSOR: _written(preprocessor_config(encoder))}


def _tensors(folder: str) -> Mapping[str, Tensor]:
    place, old = storage.join(folder, WEIGHTS), storage.join(folder, _OLD_WEIGHTS)
    if not storage.exists(place) and storage.exists(old):
        found: Mapping[str, Tensor] = torch.load(old, map_location="cpu", weights_only=True)
        return found
    return read_tensors(place)


def _read_json(where: str) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(storage.read_bytes(where))
    except AbsentError as error:
        problem = "it is missing, and so is a bundle.json."
        raise SonantError(where, problem, "Name a bundle, or a folder that transformers saved.") from error
    except ValueError as error:
        raise SonantError(where, f"this is not JSON: {error}.", "Copy the folder again.") from error
    return values


def _written(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=2, sort_keys=True) + "\n"
