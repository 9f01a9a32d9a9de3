"""Every layout that Sonant reads, and which of them a location has."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Any
from urllib.parse import unquote, urlparse

from sonant.base import storage
from sonant.base.errors import ConfigError, SourceError
from sonant.base.names import suggestion
from sonant.corpus.sources.annotations import USES, AnnotatedSource, split_spec
from sonant.corpus.sources.locate import basename, entries
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.utterance import Source

# In the order in which they are asked whether they recognise a location: the most particular first.
SOURCES = {
    "demo": "sonant.corpus.demo.source:DemoSource",
    "huggingface": "sonant.corpus.sources.huggingface:HuggingFaceSource",
    "kaldi": "sonant.corpus.sources.kaldi:KaldiSource",
    "wenet": "sonant.corpus.sources.wenet:WenetSource",
    "lhotse": "sonant.corpus.sources.lhotse:LhotseSource",
    "nemo": "sonant.corpus.sources.nemo:NemoSource",
    "librispeech": "sonant.corpus.sources.librispeech:LibriSpeechSource",
    "common_voice": "sonant.corpus.sources.common_voice:CommonVoiceSource",
    "archive": "sonant.corpus.sources.archive:ArchiveSource",
    "textgrid": "sonant.corpus.sources.textgrid:TextGridSource",
    "elan": "sonant.corpus.sources.elan:ElanSource",
    "subtitles": "sonant.corpus.sources.subtitles:SubtitlesSource",
    "table": "sonant.corpus.sources.table:TableSource",
    "folder": "sonant.corpus.sources.folder:FolderSource",
    "text": "sonant.corpus.sources.texts:TextSource",
}
_OPTIONS = {"format": "--from"}


def open_source(location: str, options: SourceOptions | None = None) -> Source:
    """The source behind a location, told by `options.format` or recognised; nothing of it is read yet."""
    options = options or SourceOptions()
    location = _local_path(location)
    name = options.format or recognise(location, options.annotations)
    source = source_type(name)
    if _is_wrapped(location, name):  # the format is that of what lies in the archive
        source = source_type("archive")
    _refuse_unused(source, options)
    if options.annotations and source.name != "archive":  # which joins them itself
        return AnnotatedSource(source, location, options)
    opened: Source = source(location, options)
    return opened


def _is_wrapped(location: str, name: str) -> bool:
    """Whether a location is an archive although another layout was told."""
    is_file = not storage.is_remote(location) and not os.path.isdir(location)
    wraps = (
        name != "archive"
        and (is_file or storage.is_remote(location))
        and source_type("archive").recognises(location, [])
    )
    return wraps and not source_type(name).recognises(location, [])


def source_type(name: str) -> Any:
    """The class behind a name; only its module is imported."""
    if name not in SOURCES:
        raise ConfigError("--from", f"there is no layout called '{name}'.", suggestion(name, SOURCES))
    module, _, member = SOURCES[name].partition(":")
    return getattr(importlib.import_module(module), member)


def recognise(location: str, annotations: Sequence[str] = ()) -> str:
    """The name of the layout that a location has; tables of annotations beside its recordings tell nothing of it."""
    is_folder = not location.startswith(("http://", "https://", "hf://")) and storage.is_folder(location)
    joined = {basename(split_spec(spec)[0]) for spec in annotations}
    names = [name for name in entries(location) if name not in joined] if is_folder else []
    for name in SOURCES:
        try:
            source = source_type(name)
        except ModuleNotFoundError:
            continue
        if source.recognises(location, names):
            return name
    if not storage.exists(location):
        raise SourceError(location, "nothing is there.", "Check the path; names are case-sensitive.")
    found = f"it holds {_some(names)}" if names else "it is no table, recording, archive or text that is known"
    action = f"Say what it is with --from: {', '.join(SOURCES)}."
    raise SourceError(location, f"the layout is not recognised: {found}.", action)


def _local_path(location: str) -> str:
    if location.startswith("file://"):
        return unquote(urlparse(location).path)
    return location if storage.is_remote(location) else os.path.expanduser(location)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


def _refuse_unused(source: Any, options: SourceOptions) -> None:
    """An option without effect is a mistake of somebody who expects one."""
    allowed = {"format", "annotations"} | set(source.uses) | (set(USES) if options.annotations else set())
    plain = SourceOptions()
    for field in fields(options):
        if field.name not in allowed and getattr(options, field.name) != getattr(plain, field.name):
            option = _OPTIONS.get(field.name) or f"--{field.name.replace('_', '-')}"
            used = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(set(source.uses) - {"format"}))
            needs = " It comes from tables that --annotations names." if field.name in USES else ""
            problem = f"the layout '{source.name}' has no use for it.{needs}"
            raise ConfigError(option, problem, f"Leave it out; of use are: --annotations, {used}.")
