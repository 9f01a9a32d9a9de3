"""Plain values become what the type hints of a dataclass promise, or a ConfigError says why they cannot."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sonant.base.document import Document, KeyPath, scalar
from sonant.base.errors import ConfigError
from sonant.base.names import suggestion

T = TypeVar("T")

_REQUIRED = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


@cache
def field_types(record: type) -> dict[str, Any]:
    """The keys that a config takes, with the type of each."""
    hints = get_type_hints(record)
    return {field.name: hints[field.name] for field in fields(record) if field.init}


def default_of(field: Field[Any]) -> Any:
    """The default of a field, or MISSING."""
    return field.default_factory() if field.default_factory is not MISSING else field.default


def convert(record: type[T], document: Document) -> T:
    """An instance of the dataclass, with every value checked."""
    instance: T = _Reader(document).read(record, document.values, (), MISSING)
    return instance


def draft(record: type, document: Document) -> Any:
    """The same values checked but not yet put together: nested dicts with all defaults, without what is missing."""
    return _Reader(document, is_draft=True).read(record, document.values, (), MISSING)


def plain(value: Any) -> Any:
    """Dataclasses to dicts and tuples to lists, all the way down."""
    if is_dataclass(value):
        record: type = type(value)
        return {name: plain(getattr(value, name)) for name in field_types(record)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


class _Reader:
    """Walks type and value together; `path` is where it is, `default` what stands there if nothing is given."""

    def __init__(self, document: Document, *, is_draft: bool = False) -> None:
        self.document, self.is_draft = document, is_draft

    def read(self, wanted: Any, value: Any, path: KeyPath, default: Any) -> Any:
        if wanted in (Any, object):
            return value
        if is_dataclass(wanted):
            return self.record(wanted, value, path, default)
        by_shape = {
            types.UnionType: self.union,
            Union: self.union,
            Literal: self.choice,
            tuple: self.sequence,
            list: self.sequence,
            dict: self.mapping,
        }
        return by_shape.get(get_origin(wanted), self.scalar)(wanted, value, path, default)

    def scalar(self, wanted: Any, value: Any, path: KeyPath, default: Any) -> Any:
        written = self.document.text(path)
        if type(value) is wanted:
            return value
        if wanted is str and written is not None and (value is not None or not written):
            return written  # 007 stays 007 where text is asked for
        if wanted is float and isinstance(value, str):
            value = scalar(value)  # other readers of YAML leave 1e-4 a string
        if wanted is float and type(value) in (int, float):
            return float(value)
        if wanted is int and isinstance(value, float) and value.is_integer():
            return int(value)  # 1e5 steps
        raise self.wrong(wanted, value, path, default)

    def choice(self, wanted: Any, value: Any, path: KeyPath, default: Any) -> Any:
        for choice in get_args(wanted):
            if (type(choice) is type(value) and choice == value) or choice == self.document.text(path):
                return choice
        raise self.wrong(wanted, value, path, default)

    def sequence(self, wanted: Any, value: Any, path: KeyPath, default: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise self.wrong(wanted, value, path, default)
        of = get_args(wanted)
        each = of if get_origin(wanted) is tuple and of[-1] is not Ellipsis else of[:1] * len(value)
        if len(each) != len(value):
            raise self.wrong(wanted, value, path, default)
        items = [
            self.read(one, item, (*path, str(index)), MISSING)
            for index, (one, item) in enumerate(zip(each, value, strict=True))
        ]
        return tuple(items) if get_origin(wanted) is tuple else items

    def mapping(self, wanted: Any, value: Any, path: KeyPath, default: Any) -> Any:
        if not isinstance(value, Mapping):
            raise self.wrong(wanted, value, path, default)
        of = get_args(wanted)[1]
        return {str(key): self.read(of, item, (*path, str(key)), MISSING) for key, item in value.items()}

    def union(self, wanted: Any, value: Any, path: KeyPath, default: Any) -> Any:
        members = [member for member in get_args(wanted) if member is not types.NoneType]
        if value is None and len(members) < len(get_args(wanted)):
            return None
        records = [member for member in members if is_dataclass(member)]
        if isinstance(value, Mapping) and len(records) > 1:
            return self.record(self.kind(records, value, path, default), value, path, default)
        exact = [member for member in members if _fits(member, value)]
        if len(members) == 1 or exact:
            return self.read((exact or members)[0], value, path, default)
        for member in members:
            try:
                return self.read(member, value, path, default)
            except ConfigError:
                continue
        raise self.wrong(wanted, value, path, default)

    def kind(self, records: Iterable[Any], value: Mapping[str, Any], path: KeyPath, default: Any) -> Any:
        """The dataclass that the key `kind` names; without the key, that of the default."""
        by_name = {name: record for record in records for name in get_args(field_types(record).get("kind"))}
        if "kind" in value:
            name = self.read(Literal[tuple(by_name)], value["kind"], (*path, "kind"), MISSING)
            return by_name[name]
        if type(default) in by_name.values():
            return type(default)
        names = ", ".join(by_name)
        raise ConfigError(self.document.place(path), f"{_named(path)} needs a 'kind'.", f"Choose one of: {names}.")

    def record(self, wanted: Any, value: Any, path: KeyPath, default: Any) -> Any:
        if not isinstance(value, Mapping):
            raise self.wrong(wanted, value, path, default)
        hints = field_types(wanted)
        for key in map(str, value):
            if key not in hints:
                raise self.unknown(key, hints, path)
        given: dict[str, Any] = {}
        for field in fields(wanted):
            if not field.init:
                continue
            # A nested config holds differences from what stands there, not from the defaults of its class.
            inherits = type(default) is wanted
            fallback = getattr(default, field.name) if inherits else default_of(field)
            if field.name in value:
                here = (*path, field.name)
                given[field.name] = self.read(hints[field.name], value[field.name], here, fallback)
            elif inherits or (self.is_draft and fallback is not MISSING):
                given[field.name] = fallback
            elif fallback is MISSING and not self.is_draft:
                missing = ".".join((*path, field.name))
                raise ConfigError(self.document.place(path), f"key '{missing}' is required.", f"Give '{missing}'.")
        return plain(given) if self.is_draft else self.construct(wanted, given, path)

    def construct(self, wanted: Any, given: dict[str, Any], path: KeyPath) -> Any:
        """A config's own checks raise a ConfigError that says which field is wrong; its place is known only here."""
        try:
            return wanted(**given)
        except ConfigError as error:
            here = (*path, *error.where.split("."))
            raise ConfigError(self.document.place(here), f"{_named(here)}: {error.problem}", error.action) from error

    def unknown(self, key: str, hints: Mapping[str, Any], path: KeyPath) -> ConfigError:
        place = self.document.place((*path, key))
        level = f" in {_named(path)}" if path else ""
        return ConfigError(place, f"key '{key}' does not exist{level}.", suggestion(key, hints))

    def wrong(self, wanted: Any, value: Any, path: KeyPath, default: Any) -> ConfigError:
        problem = f"{_named(path)} is {_found(value)}, but {_required(wanted)} is required."
        return ConfigError(self.document.place(path), problem, _action(wanted, value, default))


def _fits(member: Any, value: Any) -> bool:
    """Whether a value belongs to a member of a union without any reading between the lines."""
    if is_dataclass(member) or get_origin(member) is dict:
        return isinstance(value, Mapping)
    if get_origin(member) is Literal:
        return any(type(choice) is type(value) and choice == value for choice in get_args(member))
    return isinstance(value, list | tuple) if get_origin(member) in (tuple, list) else type(value) is member


def _named(path: KeyPath) -> str:
    return f"'{'.'.join(path)}'" if path else "the configuration"


def _found(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a group of keys"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _required(wanted: Any) -> str:
    origin, of = get_origin(wanted), get_args(wanted)
    if origin is Literal:
        return "one of " + ", ".join(map(str, of)) if len(of) > 1 else f"'{of[0]}'"
    if origin in (Union, types.UnionType):
        parts = dict.fromkeys("nothing" if part is types.NoneType else _required(part) for part in of)
        return " or ".join(parts)
    if origin in (tuple, list):
        return f"a list of {len(of)}" if origin is tuple and of[-1] is not Ellipsis else "a list"
    return _REQUIRED.get(wanted, "a group of keys")


def _action(wanted: Any, value: Any, default: Any) -> str:
    if get_origin(wanted) is Literal and isinstance(value, str):
        return suggestion(value, map(str, get_args(wanted)))
    if get_origin(wanted) in (tuple, list) and isinstance(value, str | int | float):
        return f"Write [{value}]."
    required = _required(wanted)
    is_short = isinstance(default, bool | int | float | str) and default != ""
    return f"Write {required}, or leave the key out for {default}." if is_short else f"Write {required}."
