"""Speech that has been through MP3 or Opus: encoded and decoded in memory, and put back in its place."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from sonant.audio.augment.ranges import Probability, drawn
from sonant.audio.augment.stretching import fitted
from sonant.audio.resample import resample
from sonant.base.bounds import Range, Within, check_fields
from sonant.base.errors import ConfigError

Format = Literal["mp3", "opus"]
_RATES = {
    "mp3": (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000),
    "opus": (8000, 12000, 16000, 24000, 48000),
}
_OPUS_KILOBITS = (6.0, 256.0)
_MP3_DELAY = 1105  # samples: 576 of LAME's encoder, 529 of any decoder


@dataclass(frozen=True, kw_only=True)
class Codec:
    """Lossy compression by one of the formats, each as likely as another."""

    kind: Literal["codec"] = "codec"
    probability: Probability = 1.0
    formats: tuple[Format, ...] = ("mp3", "opus")
    kilobits: Annotated[Range, Within(6.0, 320.0)] = (8.0, 48.0)  # a second; the nearest that the format offers

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.formats:
            raise ConfigError("formats", "the list is empty.", "Write at least one of: mp3, opus.")

    def apply(self, samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
        chosen = self.formats[int(rng.integers(len(self.formats)))]
        return encoded(samples, sample_rate, chosen, drawn(rng, self.kilobits))


def encoded(samples: np.ndarray, sample_rate: int, format: Format, kilobits: float) -> np.ndarray:
    """What a listener hears: as long as before and not later. Rates that the format lacks are resampled."""
    if not samples.any():
        return samples
    rate = min((rate for rate in _RATES[format] if rate >= sample_rate), default=48000)
    peak = max(1.0, float(np.abs(samples).max()))  # the encoders clip at full scale
    sent = resample(samples / np.float32(peak), sample_rate, rate)
    heard = _round_trip(fitted(sent, max(1, sent.size)), rate, format, kilobits)
    return fitted(resample(heard, rate, sample_rate), samples.size) * np.float32(peak)


def _round_trip(samples: np.ndarray, sample_rate: int, format: Format, kilobits: float) -> np.ndarray:
    import soundfile

    file = io.BytesIO()
    options = {
        "samplerate": sample_rate,
        "channels": 1,
        "compression_level": _compression(sample_rate, format, kilobits),
        **({"format": "MP3", "bitrate_mode": "CONSTANT"} if format == "mp3" else {"format": "OGG", "subtype": "OPUS"}),
    }
    with soundfile.SoundFile(file, "w", **options) as encoder:
        encoder.write(samples)
    file.seek(0)
    heard: np.ndarray = soundfile.read(file, dtype="float32")[0]
    # Frames too small for LAME's tag, which says what to skip, are decoded with the delay and padding still in them.
    return heard[_MP3_DELAY:] if heard.size > samples.size else heard


def _compression(sample_rate: int, format: Format, kilobits: float) -> float:
    """The bit rate in libsndfile's terms: 0 is the highest of the format, 1 the lowest."""
    if format == "opus":
        low, high = _OPUS_KILOBITS
    else:
        low, high = (8.0, 64.0) if sample_rate < 16000 else (8.0, 160.0) if sample_rate < 32000 else (32.0, 320.0)
    return min(max((high - kilobits) / (high - low), 0.0), 0.999)
