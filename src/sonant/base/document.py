"""Plain values that remember where they were written, so that a fault in them names file and line.

YAML is read by its version 1.2 core rules: only `true` and `false` are booleans (`no` is a word),
`1e-4` is a number, `1:30` and `2026-01-01` are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from sonant.base import storage
from sonant.base.errors import ConfigError

KeyPath = tuple[str, ...]  # keys from the root; positions in a list are written as numbers

_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_HIDDEN = re.compile("[\x85\u2028\u2029\ufeff]")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None, ".nan": float("nan")}
_WORDS |= {".inf": float("inf"), "+.inf": float("inf"), "-.inf": -float("inf")}


@dataclass(frozen=True)
class Origin:
    """Where a value was written and, for a bare word or number, exactly how."""

    place: str
    text: str | None = None


@dataclass(frozen=True)
class Document:
    """Nested dicts, lists and plain values, with the origin of each as far as it is known."""

    values: Any
    where: str
    origins: dict[KeyPath, Origin] = field(default_factory=dict)

    def place(self, path: KeyPath) -> str:
        """The place of a value, or of the nearest thing around it that has one."""
        while path and path not in self.origins:
            path = path[:-1]
        return self.origins[path].place if path in self.origins else self.where

    def text(self, path: KeyPath) -> str | None:
        return self.origins[path].text if path in self.origins else None


def scalar(text: str) -> Any:
    """What a bare word stands for."""
    if text.lower() in _WORDS and text in (text.lower(), text.capitalize(), text.upper()):
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text, 16) if text.startswith("0x") else int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def read_document(location: str) -> Document:
    """A YAML file, local or remote; an empty one holds no keys."""
    try:
        text = storage.read_bytes(location).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(location, f"byte {error.start} is not UTF-8.", "Save the file as UTF-8.") from error
    document = parse(text, location)
    if document.values is None:
        return Document({}, location)
    if not isinstance(document.values, dict):
        raise ConfigError(document.place(()), "the file holds no keys.", "Write lines of the form key: value.")
    return document


def parse(text: str, where: str) -> Document:
    """YAML text; `where` names it in errors."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}:{mark.line + 1}" if mark else where
        problem = f"this is not YAML: {error.problem or error.context}."
        raise ConfigError(place, problem, "Check indentation, colons and quotes there.") from error
    except yaml.YAMLError as error:
        raise ConfigError(where, f"this is not YAML: {error}.", "Remove that character.") from error
    document = Document(None, where)
    return Document(_plain(root, (), document, ()), where, document.origins) if root else document


def _plain(node: yaml.Node, path: KeyPath, into: Document, around: tuple[yaml.Node, ...]) -> Any:
    """The value of a node; notes the origin of everything below on the way."""
    place = f"{into.where}:{node.start_mark.line + 1}"
    if node in around or not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
        found = "an anchor that contains itself" if node in around else f"the tag {node.tag}"
        raise ConfigError(place, f"{found} has no meaning here.", "Write the value itself.")
    bare = isinstance(node, yaml.ScalarNode) and node.style is None
    into.origins.setdefault(path, Origin(place))
    into.origins[path] = Origin(into.origins[path].place, node.value if bare else None)
    around = (*around, node)
    if isinstance(node, yaml.MappingNode):
        return {key: _plain(value, (*path, key), into, around) for key, value in _pairs(node, path, into)}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(value, (*path, str(index)), into, around) for index, value in enumerate(node.value)]
    return scalar(node.value) if bare else node.value


def _pairs(node: yaml.MappingNode, path: KeyPath, into: Document) -> Iterator[tuple[str, yaml.Node]]:
    """Key and value nodes; notes the line of each key, and refuses a key written twice."""
    seen: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        place = f"{into.where}:{line}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigError(place, "a key must be a word.", "Write key: value.")
        key = str(key_node.value)
        if key in seen:
            raise ConfigError(place, f"key '{key}' was already given in line {seen[key]}.", "Keep one of the two.")
        seen[key] = line
        into.origins[*path, key] = Origin(place)
        yield key, value_node


class _Dumper(yaml.SafeDumper):
    """Quotes every string that any version of YAML, or `scalar` above, would read as something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "'" if not isinstance(scalar(text), str) else None
    if _HIDDEN.search(text):  # which single quotes would write as they are, and which would be read as line ends
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_number(dumper: yaml.SafeDumper, number: float) -> yaml.Node:
    return dumper.represent_float(number)


_Dumper.add_representer(str, _represent_text)


def write_document(values: Any) -> str:
    """YAML text that `parse` reads back to the same values, keys in their order."""
    return str(yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


def flat(values: Any, prefix: str = "") -> dict[str, Any]:
    """`{"a": {"b": 1}}` as `{"a.b": 1}`: settings side by side."""
    if not isinstance(values, dict):
        return {prefix: values}
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}.{name}" if prefix else str(name))
    return found
