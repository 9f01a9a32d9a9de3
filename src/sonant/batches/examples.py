"""From a row of the manifest to an example: read at the model's rate, cut, disturbed, encoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from sonant.audio.waveform import read_waveform
from sonant.base.errors import AudioError, ConfigError, ManifestError, StorageError, TextError
from sonant.base.randomness import generator_for
from sonant.corpus.manifest import Corpus
from sonant.corpus.utterance import Utterance

_TOLERANCE_SECONDS = 0.01  # resampling and rounding take less


@dataclass(frozen=True, kw_only=True)
class ExampleConfig:
    sample_rate: int = 16000  # what the model listens at
    crop_seconds: float | None = None  # of a longer utterance a stretch drawn anew in each epoch; None: all of it
    unreadable: Literal["raise", "skip"] = "raise"  # recordings that have gone bad since they were prepared

    def __post_init__(self) -> None:
        if self.crop_seconds is not None and not self.crop_seconds > 0:
            raise ConfigError(
                "crop_seconds", f"{self.crop_seconds} was found, seconds above 0 are required.", "Raise it, or drop it."
            )


@dataclass(frozen=True, kw_only=True)
class SpeechExample:
    """One utterance, ready to be laid beside others."""

    id: str
    pass_number: int  # how often it was seen before; the epoch, in a plain corpus
    waveform: np.ndarray  # (num_samples,) float32
    sample_rate: int
    tokens: np.ndarray | None = None  # (num_tokens,) int64
    text: str | None = None
    speaker: str | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)


class Augment(Protocol):
    """Disturbs a waveform as drawn for this utterance in this epoch; may change its length."""

    def __call__(self, samples: np.ndarray, sample_rate: int, /, *, epoch: int, id: str) -> np.ndarray: ...


class SpeechExamples:
    """Makes examples; the same utterance in the same pass gives the same bits, wherever and whenever.

    `encode` turns a text into tokens; without it the tokens of the source, if any, are taken. `label` turns
    an utterance's labels into what the objective wants; without it they stay as they are in the manifest.
    """

    def __init__(
        self,
        config: ExampleConfig = ExampleConfig(),
        *,
        seed: int = 0,
        encode: Callable[[str], Sequence[int]] | None = None,
        augment: Augment | None = None,
        label: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
    ) -> None:
        self.config, self.seed = config, seed
        self.encode, self.augment, self.label = encode, augment, label

    def __call__(self, utterance: Utterance, pass_number: int) -> SpeechExample | None:
        """The example, or None where its recording cannot be read and such are skipped."""
        try:
            waveform = self._waveform(utterance, pass_number)
        except (AudioError, StorageError) as error:
            if self.config.unreadable == "skip":
                return None
            raise _told_of(utterance, error) from error
        return self.annotated(utterance, pass_number, waveform)

    def annotated(self, utterance: Utterance, pass_number: int, waveform: np.ndarray) -> SpeechExample:
        """A waveform with all else that is known of its utterance."""
        return SpeechExample(
            id=utterance.id,
            pass_number=pass_number,
            waveform=waveform,
            sample_rate=self.config.sample_rate,
            tokens=self._tokens(utterance),
            text=utterance.text,
            speaker=utterance.speaker,
            labels=self.label(utterance.labels) if self.label else utterance.labels,
        )

    def sizes(self, corpus: Corpus) -> np.ndarray:
        """How many seconds each example will last, by the manifest."""
        crop = self.config.crop_seconds
        seconds: np.ndarray = corpus.seconds
        return seconds if crop is None else np.minimum(seconds, crop)

    def stretch(self, utterance: Utterance, pass_number: int) -> tuple[float, float | None]:
        """Start and seconds of what is read of the recording."""
        crop, seconds = self.config.crop_seconds, utterance.seconds
        if crop is None or seconds is None or seconds <= crop:
            return utterance.start, seconds
        draw = generator_for(self.seed, pass_number, utterance.id, "crop").random()
        return utterance.start + draw * (seconds - crop), crop

    def _waveform(self, utterance: Utterance, pass_number: int) -> np.ndarray:
        if utterance.audio is None:
            raise ManifestError(
                utterance.place, f"'{utterance.id}' has a text but no recording.", "Train a language model on it."
            )
        start, seconds = self.stretch(utterance, pass_number)
        samples, _ = read_waveform(
            utterance.audio,
            start=start,
            seconds=seconds,
            channel=utterance.channel,
            sample_rate=self.config.sample_rate,
            native_rate=utterance.sample_rate,
        )
        found = len(samples) / self.config.sample_rate
        if seconds is not None and found < seconds - _TOLERANCE_SECONDS:
            raise AudioError(
                utterance.audio,
                f"{found:.3f} s were read, {seconds:.3f} s are in the manifest.",
                "Restore the recording.",
            )
        if self.augment:
            samples = self.augment(samples, self.config.sample_rate, epoch=pass_number, id=utterance.id)
        return samples

    def _tokens(self, utterance: Utterance) -> np.ndarray | None:
        if self.encode is None:
            return None if utterance.tokens is None else np.array(utterance.tokens, np.int64)
        if utterance.text is None:
            raise TextError(utterance.place, f"'{utterance.id}' has no text to learn.", "Add it, or leave the row out.")
        return np.array(self.encode(utterance.text), np.int64)


def _told_of(utterance: Utterance, error: AudioError | StorageError) -> AudioError | StorageError:
    problem = f"'{utterance.id}' cannot be read as it was when the corpus was prepared: {error.where}: {error.problem}"
    action = f"{error.action} Or prepare the corpus again, or leave such utterances out with unreadable=skip."
    return type(error)(utterance.place, problem, action)
