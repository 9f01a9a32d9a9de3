"""The folder of a run: what lies where, who may write there, and its copy in a bucket.

run/
  config.yaml metrics.jsonl train_results.json eval_results.json all_results.json report.html
  states/ bundle/

`gs://` and `s3://` runs work in a local folder and send everything that is whole; on an empty machine they begin
by fetching it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sonant.base import storage
from sonant.base.errors import StorageError, UsageError
from sonant.checkpoints import bundle, state

_CACHE = "~/.cache/sonant/runs"


class RunFolder:
    """Names of what a run leaves, as local paths; `remote` is where copies go, if anywhere."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.remote = place.rstrip("/") if storage.is_remote(place) else ""
        self.local = _workplace(place) if self.remote else os.path.abspath(os.path.expanduser(place))
        if self.remote.startswith("http"):
            raise UsageError(place, "a run cannot be written to a web server.", "Use a folder, gs:// or s3://.")

    def path(self, *names: str) -> str:
        return os.path.join(self.local, *names)

    @property
    def states(self) -> str:
        return self.path("states")

    @property
    def has_state(self) -> bool:
        """Whether the run has begun."""
        return bool(state.list_states(self.states))

    @property
    def bundle(self) -> str:
        return self.path("bundle")

    @property
    def metrics(self) -> str:
        return self.path("metrics.jsonl")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Makes the folder, keeps a second process out of it, and mends what a kill left."""
        import fcntl

        with storage.storage_errors(self.local):
            os.makedirs(self.states, exist_ok=True)
        with open(self.path(".lock"), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                problem = "another process is training in this folder."
                raise UsageError(self.place, problem, "Wait for it, or choose another --run folder.") from error
            state.clear_leftovers(self.states)
            bundle.recover(self.bundle)
            yield

    def fetch(self) -> None:
        """Where the bucket is further than this machine: its newest whole state, its bundle and its log."""
        if not self.remote:
            return
        here = max((state.step_of(folder) for folder in state.list_states(self.states)), default=-1)
        with storage.storage_errors(self.remote):
            system, root = storage.file_system(self.remote)
            names = [name[len(root) :].lstrip("/") for name in sorted(system.find(root))]
            whole = [name for name in names if name.startswith("states/") and name.endswith(state.DESCRIPTION)]
            newest = max(whole, key=lambda name: state.step_of(os.path.dirname(name)), default=None)
            if newest is None or state.step_of(os.path.dirname(newest)) <= here:
                return
            wanted = [name for name in names if not name.startswith("states/")]
            wanted += [name for name in names if name.startswith(os.path.dirname(newest) + "/")]
            for name in wanted:
                os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
                system.get_file(f"{root}/{name}", self.path(name))

    def send_file(self, name: str) -> None:
        """Copies one file of the run to the bucket."""
        if self.remote and os.path.exists(self.path(name)):
            with storage.storage_errors(self.remote):
                system, root = storage.file_system(self.remote)
                system.put_file(self.path(name), f"{root}/{name}")

    def send_folder(self, name: str, marker: str) -> None:
        """Copies a folder, the file that says that it is whole last."""
        if not self.remote:
            return
        files = sorted(os.listdir(self.path(name)), key=lambda file: (file == marker, file))
        with storage.storage_errors(self.remote):
            system, root = storage.file_system(self.remote)
            with suppress(FileNotFoundError):
                system.rm_file(f"{root}/{name}/{marker}")  # a half-copied one must not look whole
            for file in files:
                system.put_file(self.path(name, file), f"{root}/{name}/{file}")

    def remove_remote(self, name: str) -> None:
        """Removes a folder of the bucket."""
        if self.remote:
            with storage.storage_errors(self.remote), suppress(FileNotFoundError):
                system, root = storage.file_system(self.remote)
                system.rm(f"{root}/{name}", recursive=True)

    def require_writable(self) -> None:
        """Says at once, and not after the first hour, that nothing can be written."""
        probe = storage.join(self.place, ".probe")
        try:
            storage.write_text(probe, "")
            storage.remove(probe)
        except StorageError as error:
            raise StorageError(self.place, f"the run cannot be written: {error.problem}", error.action) from error


def _workplace(place: str) -> str:
    """Where a remote run is worked on: the same for the same run, so that a restart here finds it."""
    digest = hashlib.blake2b(place.rstrip("/").encode(), digest_size=8).hexdigest()
    cache = os.environ.get("SONANT_CACHE", "")
    return os.path.join(os.path.expanduser(cache + "/runs" if cache else _CACHE), digest)
