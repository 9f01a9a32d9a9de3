"""The texts of recordings: those of a corpus, files of the same name beside them or in a folder, or one given."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from sonant.base import storage
from sonant.base.errors import SonantError, TextError, UsageError
from sonant.corpus.sources.lines import decode_text
from sonant.corpus.sources.locate import is_audio
from sonant.inference.transcriber import Failure
from sonant.recipes.transcribe import Named

_EXTENSIONS = (".txt", ".lab")


def with_texts(found: Iterable[Named], given: str | None = None) -> Iterator[tuple[str, Named | Failure]]:
    """Each recording by its name, with its text or with what is wrong with that.

    `given` is a text, a file, or a folder with a file for each recording; None: files beside the recordings.
    """
    found = _without_texts(found)
    if given is not None and not storage.is_folder(given):
        first = list(islice(found, 2))
        text = read_text(given) if storage.exists(given) else _literal(given)
        if len(first) > 1:
            problem = "one text was given, but there are several recordings."
            raise UsageError("--text", problem, "Give a folder with a file for each, or leave it out: they lie beside.")
        for one in first:
            _check_bare(one)
            yield one.name, replace(one, text=text)
        return
    for one in found:
        if given is not None:
            _check_bare(one)
        try:
            yield one.name, one if one.text is not None else replace(one, text=_beside(one, given))
        except SonantError as error:
            yield one.name, Failure(one.request.audio, error)


def _without_texts(found: Iterable[Named]) -> Iterator[Named]:
    """A pattern like `talks/*` takes in the texts too."""
    texts, is_heard = "", False
    for one in found:
        if one.text is None and one.request.audio.casefold().endswith(_EXTENSIONS):
            texts = one.request.audio
        else:
            is_heard = True
            yield one
    if texts and not is_heard:
        raise UsageError(
            texts, "this is a text, and no recording was named.", "Name recordings; texts come with --text."
        )


def read_text(location: str) -> str:
    """A text file in whatever encoding it has."""
    return decode_text(location).read()


def _check_bare(one: Named) -> None:
    if one.text is not None:
        raise UsageError("--text", f"'{one.name}' is of a corpus, which holds its text.", "Leave --text out.")


def _literal(given: str) -> str:
    """What looks like the name of a file and is none is a mistake, not a text."""
    is_name = given.casefold().endswith((*_EXTENSIONS, ".text", ".md")) or ("/" in given and not given.split()[1:])
    if is_name:
        raise UsageError("--text", f"there is no file '{given}'.", "Check the path, or write the text in quotes.")
    return given


def _beside(one: Named, folder: str | None) -> str:
    audio = one.request.audio
    stem = storage.join(folder, one.name) if folder else os.path.splitext(audio)[0] if is_audio(audio) else audio
    for extension in _EXTENSIONS:
        if storage.exists(stem + extension):
            return read_text(stem + extension)
    problem = f"there is no text for it: neither {stem}.txt nor {os.path.basename(stem)}.lab."
    raise TextError(audio, problem, "Write what is said in it to such a file, or say with --text where the texts lie.")
