"""Reads facts from a file's path: `{speaker}/{digit}_{speaker}_{take}` on `01/7_01_3.wav`.

`{name}` stands for one or more characters within a folder's or file's name, `*` for any of them without a name. The
pattern is compared with the end of the path, without extension. A name used twice must mean the same both times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sonant.base.errors import ConfigError
from sonant.corpus.sources.locate import AUDIO_EXTENSIONS, extension

_PART = re.compile(r"\{([^{}]*)\}|\*|([^{}*]+)|(.)", re.DOTALL)
_ALLOWED = "Write names in braces with something between them: {speaker}/{digit}_{speaker}_{take}"


@dataclass(frozen=True)
class PathPattern:
    """A pattern ready for use."""

    text: str
    names: tuple[str, ...]
    agreeing: re.Pattern[str]  # a name used twice is the same both times, which also decides where parts end
    loose: re.Pattern[str]  # the same without that: tells disagreement from another form of name

    def read(self, path: str) -> dict[str, str] | str:
        """The facts in a path without extension, or what is wrong with it."""
        found = self.agreeing.fullmatch(path)
        if found:
            return {name: found[name] for name in self.names}
        loose = self.loose.fullmatch(path)
        if not loose:
            return f"the path does not match the pattern {self.text}"
        for group, value in loose.groupdict().items():
            name = re.sub(r"__\d+$", "", group)
            if loose[name] != value:
                return f"{{{name}}} is '{loose[name]}' in one place and '{value}' in another"
        raise AssertionError("what agrees is matched by the other expression")


def path_pattern(text: str) -> PathPattern:
    """Understands a pattern, or says what is allowed."""
    written = text.replace("\\", "/").removeprefix("./")
    if extension(written) in AUDIO_EXTENSIONS:
        written = written[: -len(extension(written))]
    names: list[str] = []
    agreeing, loose, last_was_open = "(?:.*/)?", "(?:.*/)?", False
    for found in _PART.finditer(written):
        name, literal, stray = found.groups()
        if stray or (name is not None and not name.isidentifier()):
            raise ConfigError("--pattern", f"'{found[0]}' in '{text}' is not a name in braces.", _ALLOWED)
        if name is not None and last_was_open:
            raise ConfigError("--pattern", f"nothing says where '{found[0]}' in '{text}' begins.", _ALLOWED)
        last_was_open = literal is None
        if name is None:
            part = re.escape(literal) if literal else "[^/]*"
            agreeing, loose = agreeing + part, loose + part
        else:
            again = names.count(name)
            agreeing += f"(?P={name})" if again else f"(?P<{name}>[^/]+?)"
            loose += f"(?P<{name}__{again}>[^/]+?)" if again else f"(?P<{name}>[^/]+?)"
            names.append(name)
    if not names:
        raise ConfigError("--pattern", f"'{text}' names nothing.", _ALLOWED)
    return PathPattern(text, tuple(dict.fromkeys(names)), re.compile(agreeing), re.compile(loose))
