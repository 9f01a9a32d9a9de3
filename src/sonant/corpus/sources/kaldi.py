"""A Kaldi data folder: `wav.scp` with its recordings, `segments` where they are cut, `text`, `utt2spk` and others.

Sorted files are read in step, so that memory does not grow with them. Paths are looked for from the folder, from
those above it and from here. Commands in `wav.scp` are never run (see `scp.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from sonant.audio.address import Address
from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.corpus.sources.kaldi_facts import Facts
from sonant.corpus.sources.keyed import KeyedFile, Lookup
from sonant.corpus.sources.locate import AudioFinder, audio_folder, basename, entries, folders_above
from sonant.corpus.sources.missing import unless_all_are_missing
from sonant.corpus.sources.naming import split_of_folder
from sonant.corpus.sources.neighbours import gathered
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.speakers import Speakers
from sonant.corpus.sources.stretches import Stretch, Stretches
from sonant.corpus.utterance import Finding, Utterance

_SCP = "wav.scp"
_WEB_NAMES = (_SCP, "segments", "text", "utt2spk", "spk2utt", "spk2gender", "utt2lang", "reco2file_and_channel")


class KaldiSource:
    """One data folder, or a folder of several: `data` with `train`, `dev` and `test`."""

    name: ClassVar[str] = "kaldi"
    uses: ClassVar[frozenset[str]] = frozenset("audio labels label_separator missing encoding split".split())

    @classmethod
    def recognises(cls, location: str, names: Sequence[str]) -> bool:
        if not names:
            return basename(location) == _SCP
        return _SCP in names or (not storage.is_remote(location) and bool(_data_folders(location, names)))

    def __init__(self, location: str, options: SourceOptions) -> None:
        self.options = options
        self.location = storage.parent(location) if basename(location) == _SCP else location

    def rows(self) -> Iterator[Utterance | Finding]:
        names = _names_in(self.location)
        folders = [self.location] if _SCP in names else _data_folders(self.location, names)
        if not folders:
            problem = f"there is no {_SCP} in this folder, nor in one directly below."
            raise SourceError(self.location, problem, "Name the folder that holds it.")
        for folder in folders:
            reading = _Reading(folder, _names_in(folder), self.options)
            yield from unless_all_are_missing(reading.rows(), storage.join(folder, _SCP), reading.finder.folder)

    def vocabulary(self) -> list[str] | None:
        return None


def _names_in(folder: str) -> list[str]:
    if folder.startswith(("http://", "https://")):  # nothing there tells what a folder holds
        return [name for name in _WEB_NAMES if storage.exists(storage.join(folder, name))]
    return entries(folder)


def _data_folders(location: str, names: Sequence[str]) -> list[str]:
    below = [storage.join(location, name.rstrip("/")) for name in names if name.endswith("/")]
    return [folder for folder in below if storage.exists(storage.join(folder, _SCP))]


class _Reading:
    """One reading of one data folder."""

    def __init__(self, folder: str, names: Sequence[str], options: SourceOptions) -> None:
        self.folder, self.names, self.options = folder, names, options
        scp = self._file(_SCP)
        assert scp
        self.stretches = Stretches(scp, self._file("segments"), self._file("reco2file_and_channel"))
        in_order = self.stretches.main.is_ordered
        text = self._file("text")
        self.texts = Lookup(text, in_order=in_order) if text else None
        self.speakers = Speakers(self._file("utt2spk"), self._file("spk2utt"), in_order=in_order)
        self.facts = Facts(folder, names, options, in_order=in_order)
        self.finder = AudioFinder(audio_folder(folder, options.audio), folders_above(folder))
        self.split = options.split or split_of_folder(folder)

    def _file(self, name: str) -> KeyedFile | None:
        return KeyedFile(storage.join(self.folder, name), self.options.encoding) if name in self.names else None

    def rows(self) -> Iterator[Utterance | Finding]:
        for part in (self.stretches, self.speakers, self.facts):
            yield from part.findings()
        yield from self.texts.findings if self.texts else ()
        yield from self._utterances() if self.stretches.are_together else gathered(self._utterances())
        yield from self._texts_of_nothing()
        yield from self.speakers.leftovers()

    def _utterances(self) -> Iterator[Utterance | Finding]:
        for one in self.stretches:
            if isinstance(one, Finding):
                if self.texts:
                    self.texts.take(one.id)  # what is wrong is told once
                yield one
            else:
                yield self._utterance(one)

    def _utterance(self, one: Stretch) -> Utterance | Finding:
        text = self.texts.take(one.id) if self.texts else None
        speaker = self.speakers.of(one.id)
        if isinstance(speaker, Finding):
            return speaker
        audio = self._audio(one)
        if isinstance(audio, Finding):
            return audio
        labels, extra = self.facts.of(one.id, speaker)
        # Faults of sound name the recording themselves; where nothing is cut, what else can be mended is the text.
        text_place = self.texts.file.place(text.number) if self.texts and text else None
        return Utterance(
            id=one.id,
            audio=audio,
            place=one.place if text_place is None or self.stretches.segments else text_place,
            start=one.start,
            seconds=one.seconds,
            channel=one.channel,
            text=text.value if text else None,
            speaker=speaker or None,
            split=self.split or None,
            labels=labels,
            extra=extra,
        )

    def _audio(self, one: Stretch) -> str | Finding:
        if one.pointer.offset is None:
            return self.finder.find(one.pointer.name, place=one.named_at, id=one.id)
        found = self.finder.find_container(one.pointer.name, place=one.named_at, id=one.id)
        if isinstance(found, Finding):
            return found
        return str(Address(Address.parse(found).location, str(one.pointer.offset)))

    def _texts_of_nothing(self) -> Iterator[Finding]:
        main = self.stretches.main.location
        for line in self.texts.rest() if self.texts else ():
            assert self.texts
            yield Finding(
                rule="missing-audio",
                place=self.texts.file.place(line.number),
                problem=f"'{line.key}' has a text, but no line in {main}.",
                action="Add it there, or remove the text.",
                id=line.key,
            )
