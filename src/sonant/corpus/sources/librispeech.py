"""LibriSpeech as published: `<set>/<speaker>/<chapter>/<id>.flac` and one `.trans.txt` for each chapter.

`train-clean-100` is split `train`; the name of the set stays in the column `subset`. `SPEAKERS.TXT` tells the sex.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import ConfigError, SourceError
from sonant.base.names import suggestion
from sonant.corpus.sources.lines import decode_text
from sonant.corpus.sources.locate import basename, glimpse, is_audio, is_litter, stem
from sonant.corpus.sources.naming import split_called
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.utterance import Finding, Utterance

_SUFFIX = ".trans.txt"
_FACTS = ("subset", "chapter", "sex")  # beside what the manifest has columns for
_SEXES = {"M": "male", "F": "female"}


class LibriSpeechSource:
    """The whole corpus, one of its sets, or a folder below."""

    name: ClassVar[str] = "librispeech"
    uses: ClassVar[frozenset[str]] = frozenset({"labels", "encoding", "split"})

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        has_sets = any(name.endswith("/") and name.startswith(("train-", "dev-", "test-")) for name in names)
        return (has_sets and "SPEAKERS.TXT" in names) or any(map(_is_transcript, glimpse(location, names)))

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.location, self.options = location, options
        for label in options.labels:
            if label not in _FACTS:
                raise ConfigError("--labels", f"LibriSpeech tells nothing called '{label}'.", suggestion(label, _FACTS))

    def rows(self) -> Iterator[Utterance | Finding]:
        files = (path for path in storage.list_files(self.location) if not is_litter(path))
        is_empty = True
        for folder, paths in groupby(files, key=lambda path: path.rpartition("/")[0]):
            of_chapter = list(paths)
            recordings = {stem(path): path for path in of_chapter if is_audio(path)}
            for transcript in filter(_is_transcript, of_chapter):
                is_empty = False
                yield from self._chapter(folder, transcript, recordings)
            for id, path in recordings.items():  # the transcripts have taken theirs out
                yield Finding(
                    rule="empty-text",
                    place=path,
                    problem=f"no line of a {_SUFFIX} file in its folder speaks of '{id}'.",
                    action="Add its line, or remove the recording.",
                    id=id,
                )
        if is_empty:
            raise SourceError(self.location, f"there is no {_SUFFIX} file below this folder.", "Check the path.")

    def vocabulary(self) -> list[str] | None:
        return None

    def _chapter(self, folder: str, transcript: str, recordings: dict[str, str]) -> Iterator[Utterance | Finding]:
        text = decode_text(transcript, self.options.encoding)
        yield from text.findings
        parts = (folder if storage.is_remote(folder) else os.path.abspath(folder)).split("/")
        subset, speaker, chapter = ["", "", "", *parts][-3:]
        facts = {"subset": subset, "chapter": chapter, "sex": self._sexes.get(speaker)}
        for number, line in text.numbered():
            id, _, words = line.strip().partition(" ")
            if not id:
                continue
            place = f"{transcript}:{number}"
            if id not in recordings:
                problem = f"the recording '{id}' is not in {folder}."
                action = "Put it there, or remove the line; a line is: ID TEXT."
                yield Finding(rule="missing-audio", place=place, problem=problem, action=action, id=id)
                continue
            yield self._utterance(id, recordings.pop(id), place, words.strip(), speaker, facts)

    def _utterance(self, id: str, audio: str, place: str, words: str, speaker: str, facts: dict[str, Any]) -> Utterance:
        return Utterance(
            id=id,
            audio=str(Address(audio)),
            place=place,
            text=words,
            speaker=speaker,
            split=self.options.split or split_called(facts["subset"]),
            labels={name: facts[name] for name in self.options.labels},
            extra={name: value for name, value in facts.items() if name not in self.options.labels},
        )

    @cached_property
    def _sexes(self) -> dict[str, str]:
        """Sex by speaker, from the SPEAKERS.TXT that lies in the folder or above it."""
        folder = self.location
        for _ in range(4):
            location = storage.join(folder, "SPEAKERS.TXT")
            if storage.exists(location):
                rows = (line.split("|") for line in decode_text(location) if not line.startswith(";"))
                return {row[0].strip(): _SEXES.get(row[1].strip(), "") for row in rows if len(row) > 1}
            folder = storage.parent(folder)
        return {}


def _is_transcript(path: str) -> bool:
    """`84-121123.trans.txt` in a folder `84/121123` (or wherever people have moved it)."""
    name = basename(path)
    return name.casefold().endswith(_SUFFIX) and name[: -len(_SUFFIX)].replace("-", "").isdecimal()
