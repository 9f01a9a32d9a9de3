"""Recordings of every kind that is read, made once for all tests of this room."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import soundfile

RATE = 16000


@dataclass(frozen=True)
class Kind:
    """How a kind of recording is made, and how near a segment of it comes to the slice of the whole."""

    name: str  # of the file
    make: Callable[[Path, np.ndarray, int], None]
    seconds: float = 2.5
    tolerance: float = 0.0
    correlation: float = 1.0  # with the sound it was made of
    rate: int = RATE


@dataclass(frozen=True)
class Made:
    """A recording that was made: its file and the sound (N, channels) it was made of."""

    kind: Kind
    path: str
    sound: np.ndarray


def _sndfile(format: str, subtype: str, **options: object) -> Callable[[Path, np.ndarray, int], None]:
    def make(path: Path, sound: np.ndarray, rate: int) -> None:
        soundfile.write(path, sound, rate, format=format, subtype=subtype, **options)

    return make


def _libav(codec: str, container: str, first: int = 0, **options: str) -> Callable[[Path, np.ndarray, int], None]:
    """`first` is the number that the coder counts its samples from."""

    def make(path: Path, sound: np.ndarray, rate: int) -> None:
        import av

        of_file = {key: value for key, value in options.items() if key.startswith("write_")}
        of_coder = {key: value for key, value in options.items() if key not in of_file}
        with av.open(str(path), "w", format=container, options=of_file) as file:
            layout = {1: "mono", 2: "stereo", 6: "5.1"}[sound.shape[1]]
            stream = file.add_stream(codec, rate=rate, layout=layout, options=of_coder)
            coder = stream.codec_context
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(sound.T), "fltp", stream.layout.name)
            frame.sample_rate, frame.pts, frame.time_base = rate, first, Fraction(1, rate)
            cut = av.AudioResampler(coder.format, stream.layout, rate, frame_size=coder.frame_size or 0)
            for part in (*cut.resample(frame), *cut.resample(None), None):
                file.mux(stream.encode(part))

    return make


def _streamed(size: int) -> Callable[[Path, np.ndarray, int], None]:
    """A WAV from a program that could not go back to write the size of the sound."""

    def make(path: Path, sound: np.ndarray, rate: int) -> None:
        _sndfile("WAV", "PCM_16")(path, sound, rate)
        content = bytearray(path.read_bytes())
        at = content.index(b"data") + 4
        content[4:8] = content[at : at + 4] = struct.pack("<I", size)
        path.write_bytes(content)

    return make


_EXACT = 0.99999
KINDS = [
    *(
        Kind(f"{subtype.lower()}.wav", _sndfile("WAV", subtype), correlation=0.999)
        for subtype in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW")
    ),
    Kind("rifx.wav", _sndfile("WAV", "PCM_16", endian="BIG"), correlation=_EXACT),
    Kind("rf64.wav", _sndfile("RF64", "PCM_24"), correlation=_EXACT),
    Kind("extensible.wav", _sndfile("WAVEX", "PCM_24"), correlation=_EXACT),
    Kind("adpcm.wav", _sndfile("WAV", "MS_ADPCM"), correlation=0.99),
    Kind("streamed0.wav", _streamed(0), correlation=_EXACT),
    Kind("streamed-ffmpeg.wav", _streamed(0xFFFFFFFF), correlation=_EXACT),
    Kind("streamed-sox.wav", _streamed(0x7FFFF000), correlation=_EXACT),
    Kind("a.w64", _sndfile("W64", "PCM_16"), correlation=_EXACT),
    Kind("a.aiff", _sndfile("AIFF", "PCM_16"), correlation=_EXACT),
    Kind("float.aiff", _sndfile("AIFF", "FLOAT"), correlation=_EXACT),
    Kind("a.au", _sndfile("AU", "PCM_16"), correlation=_EXACT),
    Kind("mulaw.au", _sndfile("AU", "ULAW"), correlation=0.999),
    Kind("a.caf", _sndfile("CAF", "PCM_24"), correlation=_EXACT),
    Kind("a.sph", _sndfile("NIST", "PCM_16"), correlation=_EXACT),
    Kind("a.flac", _sndfile("FLAC", "PCM_16"), correlation=_EXACT),
    Kind("deep.flac", _sndfile("FLAC", "PCM_24"), correlation=_EXACT),
    Kind("vorbis.ogg", _sndfile("OGG", "VORBIS"), correlation=0.97),
    Kind("flac.ogg", _libav("flac", "ogg"), correlation=_EXACT),
    Kind("a.opus", _sndfile("OGG", "OPUS"), correlation=0.97),
    Kind("long.opus", _sndfile("OGG", "OPUS"), seconds=31, tolerance=0.005, correlation=0.97, rate=8000),
    Kind("phone.opus", _libav("libopus", "ogg", b="12000"), seconds=31, tolerance=0.005, correlation=0.0),
    Kind("cut.opus", _libav("libopus", "ogg", first=48000, b="12000"), seconds=31, tolerance=0.005, correlation=0.0),
    Kind("cbr.mp3", _sndfile("MP3", "MPEG_LAYER_III", bitrate_mode="CONSTANT"), tolerance=1e-6, correlation=0.97),
    Kind("vbr.mp3", _sndfile("MP3", "MPEG_LAYER_III", bitrate_mode="VARIABLE"), tolerance=1e-6, correlation=0.97),
    Kind("fast.mp3", _sndfile("MP3", "MPEG_LAYER_III"), tolerance=1e-6, correlation=0.97, rate=44100),
    Kind("low.mp3", _libav("libmp3lame", "mp3", b="8000"), tolerance=1e-6, correlation=0.8),
    Kind("bare.mp3", _libav("libmp3lame", "mp3", write_xing="0"), tolerance=1e-6, correlation=0.0),
    Kind("a.m4a", _libav("aac", "ipod"), correlation=0.97),
    Kind("long.m4a", _libav("aac", "ipod"), seconds=31, tolerance=0.02, correlation=0.97),
    Kind("alac.m4a", _libav("alac", "ipod"), seconds=31, correlation=_EXACT),
    Kind("a.mp4", _libav("aac", "mp4"), correlation=0.97),
    Kind("a.webm", _libav("libopus", "webm"), correlation=0.97, rate=48000),
    Kind("long.webm", _libav("libopus", "webm"), seconds=31, tolerance=1e-5, correlation=0.97, rate=48000),
    Kind("flac.mka", _libav("flac", "matroska"), correlation=_EXACT),
]


def write(kind: Kind, path: Path, sound: np.ndarray) -> Made:
    kind.make(path, sound, kind.rate)
    return Made(kind, str(path), sound)


@pytest.fixture(scope="session", params=KINDS, ids=lambda kind: kind.name)
def made(request, tmp_path_factory, voiced) -> Made:
    """A recording of two channels, of each kind in turn."""
    kind = request.param
    if kind.name.endswith(
        (".m4a", ".mp4", ".webm", ".mka", "flac.ogg", "low.mp3", "bare.mp3", "phone.opus", "cut.opus")
    ):
        pytest.importorskip("av")
    sound = np.stack([voiced(kind.seconds, kind.rate, seed=seed) for seed in (1, 2)], axis=1)
    return write(kind, tmp_path_factory.mktemp("kinds") / kind.name, sound)


@pytest.fixture(scope="session")
def make_recording(tmp_path_factory, voiced) -> Callable[..., Made]:
    """Makes a recording of the kind that a file name stands for, of any number of channels."""

    def make(name: str, *, num_channels: int = 1, seconds: float | None = None) -> Made:
        (kind,) = (one for one in KINDS if one.name == name)
        sounds = [voiced(seconds or kind.seconds, kind.rate, seed=seed) for seed in range(num_channels)]
        return write(kind, tmp_path_factory.mktemp("kinds") / name, np.stack(sounds, axis=1))

    return make
