"""Datasets of the Hugging Face hub, by id: `datasets` brings them here once, and its Arrow files are read in place.

hf://datasets/owner/name      https://huggingface.co/datasets/owner/name      owner/name with --from huggingface
owner/name:config             owner/name@revision
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse

from sonant.base.errors import AbsentError, DependencyError, SourceError, StorageError
from sonant.base.remote import reach
from sonant.corpus.sources.arrow.part import Part

_PREFIXES = ("hf://datasets/", "https://huggingface.co/datasets/", "http://huggingface.co/datasets/")
_ALONE = frozenset(("ConnectionError", "OfflineModeIsEnabled", "TransportError", "TimeoutError"))


@dataclass(frozen=True)
class HubId:
    """What is asked of the hub."""

    name: str  # or a folder laid out as one of the hub
    config: str | None = None
    revision: str | None = None


def is_hub_address(location: str) -> bool:
    return location.startswith(_PREFIXES)


def hub_id(location: str) -> HubId:
    """Takes an id apart."""
    for prefix in _PREFIXES:
        location = location.removeprefix(prefix)
    rest, _, config = location.strip("/").partition(":")
    name, _, revision = rest.partition("@")
    return HubId(name, config or None, revision or None)


def fetched_parts(where: str, wanted: HubId) -> list[Part]:
    """A part for each Arrow file in the cache of `datasets`, split after split."""
    datasets = _datasets()
    try:
        with _alone_if_nobody_answers(wanted):
            found: dict[str, Any] = datasets.load_dataset(wanted.name, wanted.config, revision=wanted.revision)
    except Exception as error:  # httpx, requests, huggingface_hub and datasets each raise classes of their own
        raise _meaning(where, wanted, error) from error
    return [
        Part(file["filename"], (file["filename"],), str(split))
        for split, dataset in found.items()
        for file in dataset.cache_files
    ]


def streamed_rows(where: str, wanted: HubId, split: str) -> Iterator[dict[str, Any]]:
    """The rows of a split as they arrive; nothing is kept on the disk."""
    datasets = _datasets()
    try:
        with _alone_if_nobody_answers(wanted):
            found = datasets.load_dataset(
                wanted.name, wanted.config, revision=wanted.revision, split=split, streaming=True
            )
        yield from found
    except Exception as error:
        raise _meaning(where, wanted, error) from error


def _datasets() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise DependencyError.for_extra("datasets", "datasets", "reading a dataset of the hub") from error
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    return datasets


@contextmanager
def _alone_if_nobody_answers(wanted: HubId) -> Iterator[None]:
    """Without a network only what was fetched before is asked for; `datasets` would try for half a minute."""
    import datasets
    from huggingface_hub import constants

    hub = urlparse(constants.ENDPOINT)
    try:
        if not os.path.isdir(wanted.name):
            reach(hub.hostname or "", hub.port or (80 if hub.scheme == "http" else 443))
    except OSError:
        before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
        try:
            yield
        finally:
            constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before
    else:
        yield


def _meaning(where: str, wanted: HubId, error: Exception) -> StorageError | SourceError:
    """What went wrong, in words of ours."""
    names = _names_behind(error)
    said = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    if "GatedRepoError" in names or "gated" in said:
        problem, action = "its owner lets in only whom they know.", "Ask on its page, then log in with: hf auth login"
    elif names & _ALONE:
        action = "Check the network; or fetch it elsewhere, write it with `save_to_disk` and name that folder."
        problem = f"the hub cannot be reached: {said}."
    elif names & {"DatasetNotFoundError", "RepositoryNotFoundError"}:
        action = "Check the path or the id (OWNER/NAME); for a private one, log in with: hf auth login"
        return AbsentError(where, "neither a folder here nor a dataset of the hub is called so.", action)
    elif isinstance(error, ValueError) and "onfig" in said:
        return SourceError(where, f"{said}.", f"Name one of them: {wanted.name}:CONFIG")
    elif isinstance(error, RuntimeError) and "script" in said:
        action = f"Read what its page has of it as Parquet: {wanted.name}@refs/convert/parquet"
        return SourceError(where, "it is a program, which `datasets` does not run any more.", action)
    elif isinstance(error, OSError):
        problem, action = f"the storage answered: {said}.", "Check the disk and try again."
    else:
        return SourceError(where, f"`datasets` cannot load it: {said}.", "Fetch its files and name their folder.")
    return StorageError(where, problem, action)


def _names_behind(error: BaseException) -> set[str]:
    """The classes of an error, and of those that it came from."""
    names: set[str] = set()
    cause: BaseException | None = error
    while cause is not None:
        names.update(kind.__name__ for kind in type(cause).__mro__)
        cause = cause.__cause__ or cause.__context__
    return names
