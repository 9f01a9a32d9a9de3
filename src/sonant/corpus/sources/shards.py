"""Tars of utterances: `x.wav` and `x.txt` next to each other, addressed inside the tar, which is never unpacked.

Further small texts, `x.spk` or `x.lang`, are columns. Each tar is walked through once, from header to header.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import ConfigError
from sonant.base.names import suggestion
from sonant.corpus.sources.locate import is_audio, is_litter
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.columns import extra_name
from sonant.corpus.sources.tables.labels import Labels
from sonant.corpus.sources.tables.utterances import one_line
from sonant.corpus.utterance import Finding, Utterance

_MOST_TEXT_BYTES = 1 << 16  # what is larger is no text of an utterance
_BLOCK = 512
_SPEAKERS = ("spk", "speaker")


class Shard(NamedTuple):
    """An address of a tar, and the split of what it holds."""

    audio: str
    split: str

    @property
    def location(self) -> str:
        return Address.parse(self.audio).location


@dataclass
class _Example:
    """Neighbouring members of one name."""

    id: str
    audio: str = ""  # the member's name
    text_place: str = ""
    texts: dict[str, str] = field(default_factory=dict)  # by extension
    fault: Finding | None = None

    def take(self, name: str, extension: str, content: bytes | None, place: str, encoding: str) -> None:
        """Adds a member; a recording is known by its name alone."""
        if content is None:
            self.audio = self.audio or name
            return
        try:
            text = content.decode(encoding or "utf-8-sig")
        except UnicodeDecodeError as error:
            if extension == "txt":  # others may be images or numbers
                self.fault = _undecodable(f"byte 0x{content[error.start]:02x}", encoding or "UTF-8", place, self.id)
            return
        self.texts[extension] = one_line(text.strip()) or ""
        if extension == "txt" or not self.text_place:
            self.text_place = place

    def results(self) -> Iterator[_Example | Finding]:
        """Itself, or its fault; nothing where it is neither sound nor text."""
        if self.fault or self.audio or self.texts:
            yield self.fault or self


def read_shards(shards: Sequence[Shard | Finding], options: SourceOptions) -> Iterator[Utterance | Finding]:
    """The utterances of all tars; what was wrong with naming one is passed on."""
    labels = Labels(options.labels, options)
    if options.labels:
        _learn(labels, shards, options)
    for shard in shards:
        if isinstance(shard, Finding):
            yield shard
            continue
        for example in _examples(shard.location, options.encoding):
            yield example if isinstance(example, Finding) else _utterance(example, shard, labels)


def _learn(labels: Labels, shards: Sequence[Shard | Finding], options: SourceOptions) -> None:
    kinds: set[str] = set()
    for shard in shards:
        for example in _examples(shard.location, options.encoding) if isinstance(shard, Shard) else ():
            if isinstance(example, _Example):
                labels.learn(example.texts)
                kinds |= example.texts.keys()
    for label in labels.names:
        if label not in kinds:
            raise ConfigError("--labels", f"no tar has members that end in .{label}.", suggestion(label, kinds))


def _utterance(example: _Example, shard: Shard, labels: Labels) -> Utterance | Finding:
    if not example.audio:
        action = "Pack it again with its recording, or remove the text."
        problem = f"'{example.id}' has no recording beside it."
        place = example.text_place
        return Finding(rule="missing-audio", place=place, problem=problem, action=action, id=example.id)
    texts = example.texts
    known = {"txt", *_SPEAKERS, *labels.names}
    return Utterance(
        id=example.id,
        audio=str(Address(shard.location, example.audio)),
        place=example.text_place or f"{shard.location}#{example.audio}",
        text=texts.get("txt"),
        speaker=next((texts[name] for name in _SPEAKERS if texts.get(name)), None),
        split=shard.split or None,
        labels=labels.read(texts),
        extra={extra_name(name): text for name, text in texts.items() if name not in known},
    )


def _examples(location: str, encoding: str) -> Iterator[_Example | Finding]:
    """The examples of one tar, and what is wrong with it."""
    example = _Example("")
    with storage.open_binary(location) as file:
        try:
            for name, content in _members(file):
                id, _, extension = name.rpartition(".")
                if id != example.id:
                    yield from example.results()
                    example = _Example(id)
                example.take(name, extension.casefold(), content, f"{location}#{name}", encoding)
        except tarfile.TarError as error:
            if example.audio and "txt" in example.texts:
                yield from example.results()
            yield _damage(location, str(error), example.id)
            return
    yield from example.results()


def _members(file: IO[bytes]) -> Iterator[tuple[str, bytes | None]]:
    """Name and content of each member, recordings without; a tarfile.TarError where the archive is not whole."""
    num_bytes = file.seek(0, 2)
    file.seek(0)
    if file.read(2) == b"\x1f\x8b":
        raise tarfile.TarError("it is compressed with gzip, so that its members cannot be reached by seeking")
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:") as archive:
        while entry := archive.next():
            archive.members = []  # type: ignore[attr-defined]  # there may be 10^6 of them
            if entry.offset_data + entry.size > num_bytes:
                raise tarfile.ReadError("it ends inside its last member")
            name = entry.name.removeprefix("./")
            if not name.isprintable():
                raise tarfile.ReadError(f"{name!a} is no name that can be written")
            if not entry.isreg() or is_litter(name):
                continue
            if is_audio(name):
                yield name, None
            elif entry.size <= _MOST_TEXT_BYTES and (content := archive.extractfile(entry)):
                yield name, content.read()
        file.seek(archive.offset)
        end = file.read(_BLOCK)
        if len(end) < _BLOCK or end.strip(b"\0"):
            raise tarfile.ReadError("its end is missing")


def _undecodable(found: str, encoding: str, place: str, id: str) -> Finding:
    action = "Name the encoding with --encoding, or pack the text as UTF-8."
    return Finding(rule="unreadable-text", place=place, problem=f"{found} is not {encoding}.", action=action, id=id)


def _damage(location: str, problem: str, last: str) -> Finding:
    action = "Unpack it once: gunzip ARCHIVE" if "gzip" in problem else "Copy or pack the archive again."
    behind = f"; what follows '{last}' is lost" if last else ""
    problem = f"this archive cannot be read to its end: {problem}{behind}."
    return Finding(rule="unreadable-archive", place=location, problem=problem, action=action)
