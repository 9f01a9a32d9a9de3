"""What stands behind the key in `wav.scp`: a file, a place in an archive, or a command.

No command is ever run. Two of them only decode a file, which is read directly instead; for every other one the error
says how to run it once.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sonant.corpus.utterance import Finding

_OFFSET = re.compile(r"(.+):(\d+)")
_RANGE = re.compile(r".+\[[\d:,]*\]")
_FLAC_FLAGS = frozenset(("--decode", "--stdout", "--silent", "--totally-silent", "--force"))
_WAV_FORMATS = ("wav", "rif", "riff")


class Pointer(NamedTuple):
    """A recording as its line names it."""

    name: str  # of a file, as the user spells it
    offset: int | None = None  # in bytes, into a Kaldi archive
    channel: int | None = None  # counted from 0, where a command picks one


class ScpError(Exception):
    """A line that is not understood: what it is, and what to do."""

    def __init__(self, rule: str, problem: str, action: str) -> None:
        super().__init__(problem)
        self.rule, self.problem, self.action = rule, problem, action

    def finding(self, place: str, id: str) -> Finding:
        """The fault with its place."""
        return Finding(rule=self.rule, place=place, problem=self.problem, action=self.action, id=id)


def pointer_of(key: str, value: str) -> Pointer:
    """The recording that a line means."""
    if not value:
        raise ScpError("bad-line", f"'{key}' has no recording.", "Write: KEY PATH")
    if value.endswith("|"):
        return _decoded_by(key, value.rstrip("| \t"))
    if value == "-" or value.startswith("|"):
        problem = f"'{value[:40]}' is a stream, from which nothing can be read twice."
        raise ScpError("piped-command", problem, "Write the recording into a file, and name that.")
    if _RANGE.fullmatch(value):
        problem = f"'{value[-40:]}' asks for a range, which scp files of features have."
        raise ScpError("bad-line", problem, "Name the whole recording; give its parts in 'segments'.")
    if found := _OFFSET.fullmatch(value):
        return Pointer(found[1], offset=int(found[2]))
    return Pointer(value)


def _decoded_by(key: str, command: str) -> Pointer:
    try:
        program, *words = shlex.split(command)
    except ValueError:
        program, words = "", []
    plain = _PLAIN.get(program.rpartition("/")[2])
    pointer = plain(words) if plain and not _does_more(command) else None
    if pointer is None:
        file = shlex.quote(f"wav/{key.replace('/', '_')}.wav")
        problem = f"'{key}' is the output of a command, and commands are never run: {command[:80]}"
        action = f"Run it once (mkdir -p wav; {command} > {file}), and write the name of that file here."
        raise ScpError("piped-command", problem, action)
    return pointer


def _does_more(command: str) -> bool:
    """Whether a shell would make more of it than one program with its arguments."""
    quoted = shlex.shlex(command, posix=True, punctuation_chars="|&;<>()")
    quoted.whitespace_split, quoted.commenters = True, ""
    return "$" in command or "`" in command or any(set(token) <= set("|&;<>()") for token in quoted if token)


def _flac(words: Sequence[str]) -> Pointer | None:
    """`flac -c -d -s FILE`, its flags in any order, together or apart."""
    files: list[str] = []
    letters = ""
    for word in words:
        if word.startswith("--"):
            if word not in _FLAC_FLAGS:
                return None
            letters += {"--decode": "d", "--stdout": "c"}.get(word, "")
        elif word.startswith("-"):
            letters += word[1:]
        else:
            files.append(word)
    is_plain = len(files) == 1 and set("cd") <= set(letters) <= set("cdsf")
    return Pointer(files[0]) if is_plain else None


def _sph2pipe(words: Sequence[str]) -> Pointer | None:
    """`sph2pipe -f wav -p -c 1 FILE`; channels are counted from 1 there."""
    rest = list(words)
    channel: int | None = None
    while rest and rest[0].startswith("-"):
        flag, value = rest.pop(0), ""
        if flag[:2] in ("-f", "-c"):
            value = flag[2:] or (rest.pop(0) if rest else "")
        if flag.startswith("-c") and value in ("1", "2"):
            channel = int(value) - 1
        elif flag != "-p" and not (flag.startswith("-f") and value in _WAV_FORMATS):
            return None
    return Pointer(rest[0], channel=channel) if len(rest) == 1 else None


_PLAIN: dict[str, Callable[[Sequence[str]], Pointer | None]] = {"flac": _flac, "sph2pipe": _sph2pipe}
