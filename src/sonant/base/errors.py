"""What a user can cause, said so that they can mend it: where, what was found, what is required, what to do."""

from __future__ import annotations


class SonantError(Exception):
    """A fault in what the user gave: printed as one paragraph, never as a traceback.

    `where` is a file with its line, an option or a key; `problem` is a sentence that says what was
    found and what is required; `action` is a sentence in the imperative.
    """

    exit_code = 3

    def __init__(self, where: str, problem: str, action: str) -> None:
        super().__init__(f"{where}: {problem} {action}")
        self.where, self.problem, self.action = where, problem, action

    def __reduce__(self) -> tuple[type[SonantError], tuple[str, str, str]]:
        return type(self), (self.where, self.problem, self.action)  # survives the way back from a worker


class UsageError(SonantError):
    """A command line or a call that does not make sense."""

    exit_code = 2


class ConfigError(UsageError):
    """A key that does not exist, a value of the wrong kind, a setting without effect."""


class SourceError(SonantError):
    """Somebody's data, in their own layout, that cannot be understood."""


class ManifestError(SonantError):
    """A corpus folder whose manifest is missing, damaged or against the contract."""


class AudioError(SonantError):
    """A recording that cannot be read as asked."""


class TextError(SonantError):
    """A text, vocabulary or tokenizer that cannot serve."""


class StorageError(SonantError):
    """A disk that is full, a folder that may not be written, a bucket that does not answer."""

    exit_code = 4


class AbsentError(StorageError):
    """Nothing lies where something was to be read."""

    def __init__(self, where: str, problem: str = "", action: str = "") -> None:
        super().__init__(where, problem or "nothing is there.", action or "Check the path; names are case-sensitive.")


class DependencyError(SonantError):
    """An optional package that the request needs and that is not installed."""

    exit_code = 5

    @classmethod
    def for_extra(cls, package: str, extra: str, purpose: str) -> DependencyError:
        """The one wording for every optional package."""
        return cls(
            package,
            f"{purpose} needs the package '{package}', which is not installed.",
            f"Install it with: pip install 'sonant[{extra}]'",
        )
