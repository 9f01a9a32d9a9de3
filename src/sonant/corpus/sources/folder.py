"""A folder of recordings, with nothing beside them but perhaps their texts: `a.wav` and `a.txt`, or `a/waveform.wav`.

What a path says of its recording is read with a pattern (see `pattern.py`).
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import ConfigError, SonantError, SourceError
from sonant.base.names import suggestion
from sonant.corpus.sources.lines import decode_text
from sonant.corpus.sources.locate import basename, glimpse, is_audio, is_litter
from sonant.corpus.sources.naming import path_id, split_called
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.pattern import path_pattern
from sonant.corpus.sources.tables.cells import CellError, present
from sonant.corpus.sources.tables.columns import extra_name
from sonant.corpus.sources.tables.labels import Labels
from sonant.corpus.sources.tables.rows import is_table
from sonant.corpus.sources.tables.utterances import channel_of, one_line
from sonant.corpus.utterance import Finding, Utterance

TEXT_EXTENSIONS = (".trans.txt", ".txt", ".lab")  # of the file beside a recording that holds its text
_FROM_PATH = ("id", "text", "speaker", "split", "channel")  # manifest columns that a pattern may name


class FolderSource:
    """Every recording below a folder is an utterance."""

    name: ClassVar[str] = "folder"
    uses: ClassVar[frozenset[str]] = frozenset("pattern labels label_separator missing encoding split".split())

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        return any(map(is_audio, glimpse(location, names))) if names else is_audio(location)

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options

    def rows(self) -> Iterator[Utterance | Finding]:
        if is_audio(self.location) and not storage.is_folder(self.location):
            folder = storage.parent(self.location)
            files = [self.location, *_beside(self.location)]
        else:
            folder, files = self.location, [path for path in storage.list_files(self.location) if not is_litter(path)]
        yield from _Reading(folder, self.options, files).rows()

    def vocabulary(self) -> list[str] | None:
        return None


def _beside(audio: str) -> list[str]:
    bare = os.path.splitext(audio)[0]
    return [bare + extension for extension in TEXT_EXTENSIONS if storage.exists(bare + extension)]


@dataclass(frozen=True)
class _Recording:
    audio: str
    path: str  # below the folder, without extension
    facts: Mapping[str, str] | str  # what the path says, or what is wrong with it


class _Reading:
    """One reading of a folder; only names are held in memory."""

    def __init__(self, folder: str, options: SourceOptions, files: Sequence[str]) -> None:
        self.folder, self.options, self.files = folder, options, files
        self.pattern = path_pattern(options.pattern) if options.pattern else None
        self.labels = Labels(_checked_labels(options.labels, self.pattern.names if self.pattern else ()), options)
        self.used = {*_FROM_PATH, *self.labels.names}

    def rows(self) -> Iterator[Utterance | Finding]:
        self._look_over()
        seen: set[str] = set()
        for recording in self._recordings():
            if recording.path in seen:
                yield _named_alike(recording)
            elif isinstance(recording.facts, str):
                yield _other_path(recording, recording.facts)
            else:
                yield from self._utterance(recording, recording.facts)
            seen.add(recording.path)
        yield from self._unread_tables(seen)

    def _recordings(self) -> Iterator[_Recording]:
        for audio in filter(is_audio, self.files):
            path = path_id(audio, self.folder)
            facts = self.pattern.read(path) if self.pattern else {}
            yield _Recording(audio, path, facts)

    def _look_over(self) -> None:
        """Lets the labels learn from all paths; refuses a folder without recordings and a pattern without matches."""
        last, num_matching = None, 0
        for last in self._recordings():
            if not isinstance(last.facts, str):
                num_matching += 1
                self.labels.learn(last.facts)
        if last is None:
            raise SourceError(self.folder, "there is no recording below this folder.", "Check the path.")
        if not num_matching:
            problem = f"no recording matches {self.options.pattern}; the last of them is '{last.path}'."
            raise SourceError(self.folder, problem, "Correct --pattern.")

    @cached_property
    def _are_stems_unique(self) -> bool:
        stems = [basename(recording.path) for recording in self._recordings()]
        return len(set(stems)) == len(stems)

    @cached_property
    def _are_folders_splits(self) -> bool:
        """Whether all recordings lie in folders called train, dev or test."""
        return all(_split_of(recording.path) for recording in self._recordings())

    @cached_property
    def _texts(self) -> dict[str, str]:
        """Location of the text of each recording, by the recording's location without extension."""
        found: dict[str, str] = {}
        for extension in TEXT_EXTENSIONS:
            for path in self.files:
                if path.casefold().endswith(extension):
                    found.setdefault(_composed(path[: -len(extension)]), path)
        return found

    def _utterance(self, recording: _Recording, facts: Mapping[str, str]) -> Iterator[Utterance | Finding]:
        known = present(facts, self.options.missing)
        id = known.get("id") or (basename(recording.path) if self._are_stems_unique else recording.path)
        text, findings = (known["text"], ()) if known.get("text") else self._text_beside(recording.audio)
        yield from findings
        try:
            yield Utterance(
                id=id,
                audio=str(Address(recording.audio)),
                place=recording.audio,
                channel=None if known.get("channel") is None else channel_of(known["channel"]),
                text=text,
                speaker=known.get("speaker"),
                split=self._split(recording.path, known.get("split")),
                labels=self.labels.read(facts),
                extra={extra_name(name): fact for name, fact in known.items() if name not in self.used},
            )
        except CellError as error:
            yield error.finding(recording.audio, id)

    def _unread_tables(self, recordings: Collection[str]) -> Iterator[Finding]:
        """Tables at the top of the folder; whoever joins one has seen the others."""
        for path in self.files if not self.options.annotations else ():
            name = path[len(self.folder) :].lstrip("/")
            is_of_one = "/" in name or os.path.splitext(name)[0] in recordings
            if not is_of_one and (is_table(name) or name.casefold().endswith(".json")):
                problem = "this table was not read."
                action = f"If it tells of the recordings, join it: --annotations {name}, or {name}@speaker."
                yield Finding(rule="unread-table", place=path, problem=problem, action=action, is_error=False)

    def _split(self, path: str, said: str | None) -> str | None:
        if self.options.split or said:
            return self.options.split or split_called(said or "") or said
        return _split_of(path) if self._are_folders_splits else None

    def _text_beside(self, audio: str) -> tuple[str | None, Sequence[Finding]]:
        location = self._texts.get(_composed(os.path.splitext(audio)[0]))
        if location is None:
            return None, ()
        try:
            text = decode_text(location, self.options.encoding)
            return one_line(text.read().strip()), text.findings
        except SonantError as error:
            fault = Finding(rule="unreadable-text", place=error.where, problem=error.problem, action=error.action)
            return None, (fault,)


def _checked_labels(wanted: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    for label in wanted:
        if label not in names:
            action = suggestion(label, names) if names else "Give --pattern or --annotations, which labels come from."
            raise ConfigError("--labels", f"nothing in the source is called '{label}'.", action)
    return wanted


def _split_of(path: str) -> str | None:
    top, below, _ = path.partition("/")
    return split_called(top) if below else None


def _composed(path: str) -> str:
    return unicodedata.normalize("NFC", path)


def _named_alike(recording: _Recording) -> Finding:
    return Finding(
        rule="ambiguous-audio",
        place=recording.audio,
        problem=f"another recording is called '{recording.path}' too, but for its extension.",
        action="Remove or rename one of the two.",
        id=recording.path,
    )


def _other_path(recording: _Recording, problem: str) -> Finding:
    action = "Rename the file, or correct --pattern."
    return Finding(rule="bad-path", place=recording.audio, problem=f"{problem}.", action=action, id=recording.path)
