"""A configuration is a frozen dataclass: its defaults, a YAML file of differences, and `--set` on top of both.

The config itself may check its values in `__post_init__` and raise a ConfigError whose `where` is the
name of the field: it reaches the user with the line of the file, or the option, that the value came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from sonant.base import storage
from sonant.base.conversion import convert, default_of, draft, plain
from sonant.base.document import Document, read_document, write_document
from sonant.base.overrides import Given, with_overrides

T = TypeVar("T")


def load(config: type[T], path: str | None = None, overrides: Sequence[str | Given] = ()) -> T:
    """The defaults, then the file, then each `key=value`; whatever is not understood is refused."""
    document = read_document(path) if path else Document({}, "the command line")
    if overrides:
        everything = Document(draft(config, document), document.where, document.origins)
        document = with_overrides(everything, overrides)
    return convert(config, document)


def from_dict(config: type[T], data: Any, where: str) -> T:
    """An instance from plain values; `where` says in errors where they came from."""
    return convert(config, Document(data, where))


def to_dict(instance: Any) -> dict[str, Any]:
    """Every value, the defaults among them, as plain values that YAML can hold."""
    values: dict[str, Any] = plain(instance)
    return values


def save(instance: Any, path: str) -> None:
    """Writes every value, so that the file means the same when the defaults have changed."""
    storage.write_text(path, write_document(to_dict(instance)))


def differences(instance: Any) -> dict[str, Any]:
    """What distinguishes a config from its defaults: the shortest file that loads to it."""
    return _differing(instance, None)


def _differing(instance: Any, base: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(instance):
        if not field.init:
            continue
        value = getattr(instance, field.name)
        default = default_of(field) if base is None else getattr(base, field.name)
        is_same_kind = type(value) is type(default)
        if is_same_kind and value == default:
            continue
        nested = is_same_kind and is_dataclass(value)
        found[field.name] = _differing(value, default) if nested else _brief(value)
    return found


def _brief(value: Any) -> Any:
    """A value that has no default to lean on, except those of its own class."""
    if is_dataclass(value):
        kind = {"kind": value.kind} if hasattr(value, "kind") else {}
        return kind | _differing(value, None)
    if isinstance(value, list | tuple):
        return [_brief(item) for item in value]
    return {key: _brief(item) for key, item in value.items()} if isinstance(value, dict) else value
