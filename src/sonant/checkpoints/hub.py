"""A bundle onto a model hub: its folder as it is, under a name."""

from __future__ import annotations

from sonant.base.errors import DependencyError, StorageError, UsageError
from sonant.checkpoints.bundle import open_bundle

_TRANSPORTS = ("httpx", "httpx2", "requests")  # their errors share no base that we could import


def push_bundle(folder: str, name: str, *, is_private: bool = True) -> str:
    """Uploads a bundle and gives its address; private unless somebody says otherwise on the hub."""
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError
    except ImportError as error:
        raise DependencyError.for_extra("huggingface_hub", "datasets", "a model hub") from error
    bundle = open_bundle(folder)
    try:
        hub = HfApi()
        found = hub.create_repo(name, private=is_private, exist_ok=True)
        told = f"Step {bundle.description.step}"
        hub.upload_folder(folder_path=folder, repo_id=found.repo_id, commit_message=told)
        return str(found)
    except HFValidationError as error:
        raise UsageError(name, f"this is no name on a hub: {error}", "Write it as owner/name.") from error
    except LocalTokenNotFoundError as error:
        problem = "the hub wants to know who you are."
        raise StorageError(name, problem, "Log in with: hf auth login. The bundle stays where it is.") from error
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        problem = (
            "the hub refuses: not logged in, or not allowed." if status in (401, 403) else f"the hub says: {error}"
        )
        raise StorageError(name, problem, "Log in with: hf auth login. The bundle stays where it is.") from error
    except Exception as error:
        if not isinstance(error, OSError) and type(error).__module__.partition(".")[0] not in _TRANSPORTS:
            raise
        problem = f"the hub cannot be reached ({type(error).__name__})."
        raise StorageError(name, problem, "Try again later with the same command. The bundle stays here.") from error
