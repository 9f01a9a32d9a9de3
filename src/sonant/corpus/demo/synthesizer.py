"""espeak-ng through ctypes: text to samples and word times, the same bits for the same request.

The library remembers phases and noise from one utterance to the next and seeds its noise by the clock. So that an
utterance depends on nothing but its request, the library is loaded anew for each (4 ms) and given a seed.
"""

from __future__ import annotations

import _ctypes
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sonant.base.errors import AudioError, DependencyError

SAMPLE_RATE = 22050
_SYNCHRONOUS, _PHONEME_EVENTS, _DONT_EXIT = 2, 0x0001, 0x8000
_RATE, _PITCH, _RANGE = 1, 3, 4
_WORD, _END, _PHONEME = 1, 5, 7
_BY_CHARACTER, _UTF8 = 1, 1


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be said, and how."""

    text: str
    voice: str  # "en-us+f3"
    words_per_minute: int = 175  # 80 to 450
    pitch: int = 50  # 0 to 99
    pitch_range: int = 50  # 0, a monotone, to 99
    seed: int = 0


@dataclass(frozen=True)
class Word:
    """A word and the samples that it fills."""

    text: str
    first: int
    last: int


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),  # of characters, from 1
        ("num_characters", ctypes.c_int),
        ("milliseconds", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("name", ctypes.c_char * 8),
    )


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


def espeak() -> tuple[str, str]:
    """Where the synthesizer's library and its data lie."""
    try:
        import espeakng_loader
    except ImportError as error:
        raise DependencyError.for_extra("espeakng-loader", "demo", "speaking the demo corpus") from error
    return str(espeakng_loader.get_library_path()), str(espeakng_loader.get_data_path())


def synthesize(request: Request, data: str) -> tuple[np.ndarray, list[Word]]:
    """Samples (N,) int16 at SAMPLE_RATE, and the words with their places among them."""
    pieces: list[np.ndarray] = []
    events: list[tuple[int, int, int, int, bytes]] = []

    def hear(samples: Any, count: int, event: Any) -> int:
        if samples and count > 0:
            pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
        for one in iter(event):
            if not one.type:
                break
            events.append((one.type, one.text_position, one.num_characters, one.sample, one.name))
        return 0

    callback = _Callback(hear)
    text = request.text.encode()
    with _loaded(data, request.seed) as library:
        library.espeak_SetSynthCallback(callback)
        if library.espeak_SetVoiceByName(request.voice.encode()):
            raise AudioError(request.voice, "espeak-ng has no such voice.", "Install espeakng-loader again.")
        for parameter, value in (
            (_RATE, request.words_per_minute),
            (_PITCH, request.pitch),
            (_RANGE, request.pitch_range),
        ):
            library.espeak_SetParameter(parameter, value, 0)
        library.espeak_Synth(text, len(text) + 1, 0, _BY_CHARACTER, 0, _UTF8, None, None)
        library.espeak_Synchronize()
    return np.concatenate(pieces), _words(request.text, events)


@contextmanager
def _loaded(data: str, seed: int) -> Iterator[Any]:
    library = ctypes.CDLL(espeak()[0])
    try:
        rate = library.espeak_Initialize(_SYNCHRONOUS, 0, data.encode(), _DONT_EXIT | _PHONEME_EVENTS)
        if rate != SAMPLE_RATE:
            raise AudioError(data, f"espeak-ng could not start (it answered {rate}).", "Install espeakng-loader again.")
        library.espeak_ng_SetRandSeed(ctypes.c_long(seed))
        ctypes.CDLL(None).srand(seed)  # some variants take their breath from the C library
        yield library
        library.espeak_Terminate()
    finally:
        _ctypes.dlclose(library._handle)


def _words(text: str, events: list[tuple[int, int, int, int, bytes]]) -> list[Word]:
    """A word lasts from its event to the next word's, or to the pause before it."""
    words: list[Word] = []
    start: tuple[int, int, int] | None = None
    for kind, position, count, sample, name in events:
        is_pause = kind == _PHONEME and name.startswith(b"_")
        if start and (kind in (_WORD, _END) or is_pause):
            words.append(Word(text[start[0] - 1 : start[0] - 1 + start[1]], start[2], sample))
            start = None
        if kind == _WORD:
            start = (position, count, sample)
    return words
