"""A bundle: a trained model that describes itself, as a folder.

bundle/
  model.safetensors     weights under the names of its architecture (Hugging Face's, where it is one of theirs)
  bundle.json           task, architecture and config, front end, vocabulary, decoding, metrics, data
  README.md             the model card; and tokenizer files, config.json for `from_pretrained`, companions

Everything that answers with a model (evaluate, transcribe, serve, export) reads what it needs here and nowhere else.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

import sonant
from sonant.base import storage
from sonant.base.errors import AbsentError, SonantError
from sonant.base.names import suggestion
from sonant.checkpoints.tensors import load_weights, read_tensors, write_tensors

FORMAT_VERSION = 1
DESCRIPTION, WEIGHTS, CARD = "bundle.json", "model.safetensors", "README.md"

# Where each architecture is built: a module with `build(config) -> nn.Module`, imported only when needed.
ARCHITECTURES = {
    "causal": "sonant.models.causal",
    "wav2vec2": "sonant.models.wav2vec2_pretraining",
    "best_rq": "sonant.models.best_rq",
    "ctc": "sonant.models.ctc",
    "conformer": "sonant.models.conformer",
    "writer": "sonant.models.writer",
}
# Whose weights lie under Hugging Face's names: a module with `own_weights(weights, config)`.
RENAMED = dict.fromkeys(("wav2vec2", "best_rq"), "sonant.checkpoints.wav2vec2_weights")


class BundleError(SonantError):
    """A folder that is no bundle, or one that cannot do what is asked of it."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a bundle says of itself, as plain values."""

    task: str  # pretrain, ctc, seq2seq, streaming, classify, language
    architecture: str  # a key of ARCHITECTURES
    config: dict[str, Any]  # what the architecture is built from
    front_end: dict[str, Any] = field(default_factory=dict)  # from waveforms to what the model takes
    text: dict[str, Any] = field(default_factory=dict)  # normaliser and tokenizer: options, and names of files
    labels: dict[str, Any] = field(default_factory=dict)
    decoding: dict[str, Any] = field(default_factory=dict)
    evaluation: dict[str, Any] = field(default_factory=dict)  # how its figures were measured
    metrics: dict[str, float] = field(default_factory=dict)  # of the validation that made it the best
    data: dict[str, Any] = field(default_factory=dict)  # fingerprints of the corpora it learnt from
    step: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {"format": FORMAT_VERSION, "sonant": sonant.__version__, **vars(self)}


@dataclass(frozen=True)
class Bundle:
    """An opened bundle; nothing of its weights is read yet."""

    folder: str
    description: Description

    def path(self, name: str) -> str:
        return storage.join(self.folder, name)

    def model(self) -> nn.Module:
        """The architecture with its weights, in evaluation mode."""
        architecture, config = self.description.architecture, self.description.config
        if not storage.exists(self.path(WEIGHTS)):
            problem = f"this bundle is not whole: {WEIGHTS} is missing."
            raise BundleError(self.folder, problem, "Copy the whole folder again.")
        model, weights = build(architecture, config, self.path(DESCRIPTION)), read_tensors(self.path(WEIGHTS))
        if architecture in RENAMED:
            weights = importlib.import_module(RENAMED[architecture]).own_weights(weights, config)
        load_weights(model, weights, self.path(WEIGHTS))
        return model.eval()

    def require_task(self, *tasks: str) -> None:
        if self.description.task not in tasks:
            wanted = " or ".join(f"'{task}'" for task in tasks)
            problem = f"this bundle was trained for '{self.description.task}', {wanted} is required."
            raise BundleError(self.folder, problem, "Name a bundle of that task.")


def build(architecture: str, config: Mapping[str, Any], where: str) -> nn.Module:
    """A model as its config says, its weights as chance has them."""
    if architecture not in ARCHITECTURES:
        problem = f"the architecture '{architecture}' is not known."
        raise BundleError(where, problem, suggestion(architecture, ARCHITECTURES))
    module = importlib.import_module(ARCHITECTURES[architecture])
    model: nn.Module = module.build(config)
    return model


def open_bundle(folder: str) -> Bundle:
    """Reads what a bundle says of itself."""
    where = storage.join(folder, DESCRIPTION)
    if os.path.isfile(folder):
        raise BundleError(folder, "this is a file, a bundle is a folder.", "Name the folder 'bundle' of a run.")
    try:
        values: dict[str, Any] = json.loads(storage.read_bytes(where))
    except AbsentError as error:
        problem = f"this is not a bundle: {DESCRIPTION} is missing."
        raise BundleError(
            folder, problem, "Name the folder 'bundle' of a run, or import one: sonant import."
        ) from error
    except ValueError as error:
        raise BundleError(where, f"this is not JSON: {error}.", "Copy the bundle again.") from error
    found = values.pop("format", None)
    values.pop("sonant", None)
    if found != FORMAT_VERSION:
        raise BundleError(
            where, f"format {found} was found, {FORMAT_VERSION} is read.", "Use the Sonant that wrote it."
        )
    unknown = values.keys() - Description.__dataclass_fields__.keys()
    if unknown:
        raise BundleError(where, f"the key '{min(unknown)}' is not known.", "Use the Sonant that wrote it.")
    return Bundle(folder, Description(**values))


def write_bundle(
    folder: str, description: Description, weights: Mapping[str, Tensor], files: Mapping[str, str | bytes]
) -> None:
    """Writes a bundle whole: whoever looks meanwhile sees the one before. The same bundle gives the same bytes."""
    temporary = _beside(folder, ".part")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        for name, content in files.items():
            _write(storage.join(temporary, name), content)
        write_tensors(storage.join(temporary, WEIGHTS), weights)
        text = json.dumps(description.as_dict(), ensure_ascii=False, indent=2)
        _write(storage.join(temporary, DESCRIPTION), text + "\n")
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    put_in_place(temporary, folder)


def describe_anew(bundle: Bundle, description: Description) -> Bundle:
    """Another description of the same weights, put in place in one go; what it names must lie there already."""
    text = json.dumps(description.as_dict(), ensure_ascii=False, indent=2)
    _write(bundle.path(DESCRIPTION), text + "\n")
    return Bundle(bundle.folder, description)


def put_in_place(temporary: str, folder: str) -> None:
    """Renames a finished folder over an older one; a kill between the two renames is mended by `recover`."""
    old = _beside(folder, ".old")
    shutil.rmtree(old, ignore_errors=True)
    if os.path.isdir(folder):
        os.rename(folder, old)
    os.rename(temporary, folder)
    shutil.rmtree(old, ignore_errors=True)


def recover(folder: str) -> None:
    """Mends what a kill left: the bundle before comes back, half-written ones go."""
    old = _beside(folder, ".old")
    if os.path.isdir(old) and not os.path.isdir(folder):
        os.rename(old, folder)
    for left in (old, _beside(folder, ".part")):
        shutil.rmtree(left, ignore_errors=True)


def _write(location: str, content: str | bytes) -> None:
    data = content.encode("utf-8") if isinstance(content, str) else content
    storage.write_whole(location, lambda file: file.write(data))


def _beside(folder: str, ending: str) -> str:
    parent, name = os.path.split(os.path.abspath(folder))
    return os.path.join(parent, f".{name}{ending}")
