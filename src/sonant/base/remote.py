"""Buckets and web servers: the file system behind a URI, and what its libraries mean by their errors.

Each library raises classes of its own, some only after minutes of trying again. Here they become one sentence
each, and a place that cannot be reached at all is found out within seconds.
"""

from __future__ import annotations

import functools
import http.client
import os
import shutil
import socket
import tempfile
import urllib.request
from typing import IO, Any
from urllib.parse import urlparse

from sonant.base.errors import AbsentError, DependencyError, StorageError

_EXTRAS = {"gs": "gcsfs", "gcs": "gcsfs", "s3": "s3fs", "http": "aiohttp", "https": "aiohttp"}
_LIBRARIES = frozenset(("aiobotocore", "aiohttp", "botocore", "fsspec", "gcsfs", "google", "requests", "s3fs"))
_LOGIN = {
    "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in with: aws configure",
    "gs": "Log in with: gcloud auth application-default login",
}
_SECONDS_TO_ANSWER = 5.0
_ANSWERS: dict[tuple[str, str], bool] = {}  # whether a server gives parts of files
_KEPT_IN_MEMORY = 1 << 23  # bytes of a file that had to be fetched whole


def file_system(location: str) -> tuple[Any, str]:
    """The fsspec file system behind a URI and the path inside it."""
    import fsspec

    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # each probe stalls for 60 s otherwise
    os.environ.setdefault("GCE_METADATA_DETECT_RETRIES", "1")  # else 15 s to see that no metadata server is there
    scheme = location.partition("://")[0]
    try:
        # Listings kept in memory would hide what other people write.
        system, path = fsspec.core.url_to_fs(location, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        if scheme not in _EXTRAS:
            raise StorageError(
                location, f"the scheme '{scheme}' is not known.", "Use gs://, s3:// or https://."
            ) from error
        raise DependencyError.for_extra(_EXTRAS[scheme], "remote", f"reading {scheme}://") from error
    if _EXTRAS.get(scheme) == "gcsfs":
        host, port = _google()
        try:
            reach(host, port)
        except OSError as error:
            raise _unreachable(location) from error
    return system, path


def open_seekable(location: str, **how: Any) -> IO[bytes]:
    """A file behind a URI, fetched in parts; from a web server that sends files only whole it is fetched whole."""
    system, path = file_system(location)
    if gives_ranges(location):
        file: Any = system.open(path, "rb", **how)
        if file.size is not None:
            return file  # type: ignore[no-any-return]
        file.close()
    whole: Any = tempfile.SpooledTemporaryFile(_KEPT_IN_MEMORY)  # noqa: SIM115 its reader closes it
    with system.open(path, "rb", block_size=0) as stream:
        shutil.copyfileobj(stream, whole, 1 << 20)
    whole.seek(0)
    return whole  # type: ignore[no-any-return]


def gives_ranges(location: str) -> bool:
    """Whether parts of a file can be asked for: always, but for some web servers."""
    parsed = urlparse(location)
    return parsed.scheme not in ("http", "https") or _gives_ranges(parsed.scheme, parsed.netloc, location)


def _gives_ranges(scheme: str, server: str, location: str) -> bool:
    if (scheme, server) not in _ANSWERS:
        request = urllib.request.Request(location, headers={"Range": "bytes=0-0"})
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS_TO_ANSWER) as answer:
                _ANSWERS[scheme, server] = answer.status == 206
        except (OSError, http.client.HTTPException):
            return True  # an empty file has no parts; what else is wrong, whoever reads will be told
    return _ANSWERS[scheme, server]


def is_of_storage(error: BaseException) -> bool:
    """True for errors of the system and of the libraries behind buckets, most of which are no `OSError`."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _LIBRARIES


def meaning(location: str, error: BaseException) -> StorageError:
    """What an error of such a library says, in words of ours."""
    scheme = location.partition("://")[0]
    cause = _behind(error)
    name, status = type(cause).__name__, str(getattr(cause, "status", "") or getattr(cause, "code", ""))
    if name in ("NoCredentialsError", "PartialCredentialsError") or status == "401":
        action = _LOGIN.get(scheme, "Log in to that place first.")
        return StorageError(location, "no credentials were found for this place.", action)
    if isinstance(cause, PermissionError) or status == "403" or "Forbidden" in str(cause):
        return StorageError(location, "access is denied.", "Ask its owner for the right, or choose another place.")
    if isinstance(cause, FileNotFoundError) or status == "404":
        return AbsentError(location)
    if "Connect" in name or isinstance(cause, TimeoutError):
        return _unreachable(location)
    return StorageError(location, f"the storage answered: {cause or name}.", "Check the place and try again.")


def _behind(error: BaseException) -> BaseException:
    """fsspec says 'not found' of a web server that does not answer; the error behind it knows better."""
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and type(cause).__module__.startswith("aiohttp"):
        assert cause is not None
        return cause
    return error


def _unreachable(location: str) -> StorageError:
    action = "Check the address and the network, then run the same command again."
    return StorageError(location, "its server cannot be reached.", action)


def _google() -> tuple[str, int]:
    emulator = os.environ.get("STORAGE_EMULATOR_HOST", "")
    parsed = urlparse(emulator if "://" in emulator else f"http://{emulator}")
    return (parsed.hostname, parsed.port or 80) if parsed.hostname else ("storage.googleapis.com", 443)


@functools.cache  # keeps success only: an error is raised, and asked again
def reach(host: str, port: int) -> None:
    """Raises OSError within seconds where nobody answers; gcsfs and the hub try for half a minute. Behind a proxy only
    they can tell."""
    if not any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")):
        socket.create_connection((host, port), timeout=_SECONDS_TO_ANSWER).close()
