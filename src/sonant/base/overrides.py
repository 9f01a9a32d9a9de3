"""`--set a.b=value`: one value of a configuration, given on the command line; an option of its own means the same."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sonant.base.document import Document, KeyPath, Origin, parse, scalar
from sonant.base.errors import ConfigError


@dataclass(frozen=True)
class Given:
    """A value that a command-line option of its own gave: `--from kaldi` for `source.format`."""

    key: str
    value: Any  # text, a number, true, or a list or dict of texts
    option: str


def with_overrides(document: Document, overrides: Sequence[str | Given]) -> Document:
    """A copy in which each `a.b=value` stands; what is named twice keeps the last."""
    values, origins = copy.deepcopy(document.values), dict(document.origins)
    for path, value, written in sorted(map(_read, overrides), key=lambda item: _rank(item[0])):
        place = written[path].place
        _put(values, path, value, place)
        origins = {known: at for known, at in origins.items() if known[: len(path)] != path}
        for depth in range(1, len(path)):
            origins.setdefault(path[:depth], Origin(place))
        origins |= written
    return Document(values, document.where, origins)


def _rank(path: KeyPath) -> tuple[bool, int]:
    """What a thing is decides which keys it has, so `a.kind` goes before `a.anything`, whatever their order."""
    return path[-1] != "kind", len(path) if path[-1] == "kind" else 0


def _read(override: str | Given) -> tuple[KeyPath, Any, dict[KeyPath, Origin]]:
    """Where a value goes, the value, and how it and each of its parts was written."""
    if isinstance(override, Given):
        path = tuple(override.key.split("."))
        texts = {(*path, *below): Origin(override.option, text) for below, text in _texts(override.value)}
        return path, _scalars(override.value), {path: Origin(override.option), **texts}
    path, text = _split(override)
    place = f"--set {'.'.join(path)}"
    return path, _value(text, place), {path: Origin(place, text)}


def _texts(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Every bare word of a value with its place in it: 007 stays 007 where text is asked for."""
    if isinstance(value, str):
        yield (), value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from (((str(key), *below), text) for below, text in _texts(item))


def _scalars(value: Any) -> Any:
    """What the bare words of a value stand for."""
    if isinstance(value, dict):
        return {key: _scalars(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_scalars(item) for item in value]
    return scalar(value) if isinstance(value, str) else value


def _split(override: str) -> tuple[KeyPath, str]:
    name, has_value, text = override.partition("=")
    path = tuple(name.strip().split("."))
    if not has_value or not all(path):
        raise ConfigError(f"--set {override}", "this is not of the form key=value.", "Write --set key=value.")
    return path, text.strip()


def _value(text: str, place: str) -> Any:
    """A bare word, or YAML in brackets or quotes."""
    if text[:1] not in ("[", "{", '"', "'"):
        return scalar(text)
    try:
        return parse(text, place).values
    except ConfigError:
        return text  # "{speaker}/{take}" is text, if text is what the key asks for


def _put(node: Any, path: KeyPath, value: Any, place: str) -> None:
    for depth, key in enumerate(path):
        around = ".".join(path[:depth]) or "the configuration"
        if isinstance(node, list):
            _make_room(node, key, around, place)
        elif not isinstance(node, dict):
            raise ConfigError(place, f"'{around}' is a value and has no key '{key}'.", f"Set '{around}' itself.")
        at: Any = int(key) if isinstance(node, list) else key
        if depth == len(path) - 1:
            if key == "kind" and isinstance(node, dict) and node.get(key) != value:
                node.clear()  # another kind has other keys
            node[at] = value
        elif (node.get(at) if isinstance(node, dict) else node[at]) is None:
            node[at] = {}
        node = node[at]


def _make_room(items: list[Any], key: str, around: str, place: str) -> None:
    """A number names an item; the number after the last one appends."""
    if not key.isdecimal() or int(key) > len(items):
        problem = f"'{around}' is a list of {len(items)}, which has no '{key}'."
        raise ConfigError(place, problem, f"Use a number from 0 to {len(items)}; {len(items)} appends.")
    if int(key) == len(items):
        items.append(None)
