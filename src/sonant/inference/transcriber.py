"""A recogniser at work: recordings in, texts with times out.

    transcriber = Transcriber.open("run/bundle")
    transcriber.transcribe("talk.flac").text
    transcriber.align("talk.flac", "What is said in it.").words
    for found in transcriber.transcribe_all(places):     # as many at a time as fill a batch; a bad file is a failure

An utterance has the same text whatever stands beside it. A long recording is heard in windows that overlap, or between
pauses, and is read, heard and written down bit by bit: an hour of it needs no more memory than a few minutes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar

import numpy as np

from sonant.audio.voice_activity import Detector
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import SonantError, TextError, UsageError
from sonant.base.lengths import Lengths
from sonant.checkpoints.bundle import open_bundle
from sonant.decoding.decoder import Decoder, DecodingConfig
from sonant.decoding.hypotheses import Hypothesis
from sonant.decoding.passages import Passage, PassageCutter, join_answers
from sonant.decoding.seams import Stitcher
from sonant.decoding.spelling import Spelling
from sonant.inference.aligner import align
from sonant.inference.decoding import Say, open_decoder, saved_decoding, silent
from sonant.inference.devices import check_device
from sonant.inference.listener import Listener, OnHeard, Request, Sound
from sonant.inference.pieces import Cut
from sonant.inference.scored import Scored
from sonant.inference.scoring import BeingScored, scores_of
from sonant.inference.transcripts import Transcript
from sonant.text.tokenizer import load_tokenizer

__all__ = ["Failure", "Request", "Transcriber", "TranscriberConfig"]

_CELLS = 1 << 24  # scores that are searched at once: 64 MB
Answer = TypeVar("Answer", Transcript, Scored)
_Found = list[tuple[Passage, list[Hypothesis]]]


@dataclass(frozen=True, kw_only=True)
class TranscriberConfig:
    """How recordings are cut and heard."""

    num_best: Annotated[int, Within(1, 1000)] = 1  # answers for each recording
    window_seconds: Annotated[float, Within(1, 1e5)] = 30.0  # longer recordings are heard in such windows
    context_seconds: Annotated[float, Within(0, 1e5)] = 4.0  # of a window, on each side: windows overlap by twice that
    detector: Detector | None = None  # of voices: recordings are cut in pauses, and only what none divides in windows
    batch_seconds: Annotated[float, Within(1, 1e6)] = 120.0  # of a batch, padding included
    precision: Literal["fp32", "bf16"] = "fp32"

    def __post_init__(self) -> None:
        check_fields(self)
        if 2 * self.context_seconds >= self.window_seconds:
            problem = f"{self.context_seconds:g} s on both sides leave nothing of {self.window_seconds:g} s."
            raise UsageError("context_seconds", problem, "Give less than half of window_seconds.")


@dataclass(frozen=True)
class Failure:
    """A recording that could not be heard."""

    audio: str
    error: SonantError


@dataclass(frozen=True)
class Transcriber:
    model: Any
    spelling: Spelling
    config: TranscriberConfig = field(default_factory=TranscriberConfig)
    decoder: Decoder | None = None  # None: the best symbol of each frame
    device: str = "cpu"

    @classmethod
    def open(
        cls,
        folder: str,
        device: str = "cpu",
        config: TranscriberConfig | None = None,
        decoding: DecodingConfig | None = None,
        say: Say = silent,
    ) -> Transcriber:
        """The recogniser of a bundle; without `decoding` it decodes as the bundle says."""
        check_device(device)
        bundle, config = open_bundle(folder), config or TranscriberConfig()
        bundle.require_task("ctc")
        spelling = Spelling(load_tokenizer(folder))
        decoder = open_decoder(bundle, spelling, decoding or saved_decoding(bundle), device, say)
        decoder.require_answers(config.num_best)
        return cls(bundle.model().to(device), spelling, config, decoder, device)

    @property
    def frame_seconds(self) -> float:
        found: float = self.model.samples_per_frame / self.model.sample_rate
        return found

    def transcribe(self, audio: str | np.ndarray, sample_rate: int | None = None) -> Transcript:
        """One recording: its place, or its samples (N,) in [-1, 1] at a rate."""
        return or_error(next(self._written([self._sound(audio, sample_rate)])))

    def transcribe_all(
        self, requests: Iterable[Request], on_heard: OnHeard = lambda seconds: None
    ) -> Iterator[Transcript | Failure]:
        """The answers in the order of the requests; reads ahead no further than a few batches."""
        return self._written((Sound.of(one, self.model.sample_rate) for one in requests), on_heard)

    def align(self, audio: str | np.ndarray, text: str, sample_rate: int | None = None) -> Transcript:
        """When each word of a text is said in a recording; the words are as the text writes them."""
        return align(self.score(audio, sample_rate), text, self.spelling)

    def align_all(self, pairs: Iterable[tuple[Request, str]]) -> Iterator[Transcript | Failure]:
        """The same for recordings with their texts, in their order; one that does not go with its text is a failure."""
        texts: deque[str] = deque()

        def requests() -> Iterator[Request]:
            for request, text in pairs:
                texts.append(text)
                yield request

        for one in self.score_all(requests()):
            text = texts.popleft()
            try:
                yield one if isinstance(one, Failure) else align(one, text, self.spelling)
            except TextError as error:
                yield Failure(one.audio, error)

    def score(self, audio: str | np.ndarray, sample_rate: int | None = None) -> Scored:
        """One recording, given as to `transcribe`."""
        return or_error(next(self._scored([self._sound(audio, sample_rate)])))

    def score_all(self, requests: Iterable[Request]) -> Iterator[Scored | Failure]:
        """The scores of every frame, in the order of the requests; those of a long recording fill memory."""
        return self._scored(Sound.of(one, self.model.sample_rate) for one in requests)

    def log_probs(self, recordings: Iterable[np.ndarray]) -> list[np.ndarray]:
        """(T, V) of each recording: samples (N,) at the model's rate."""
        return [or_error(one).log_probs for one in self._scored(Sound("", [samples]) for samples in recordings)]

    def _sound(self, audio: str | np.ndarray, sample_rate: int | None) -> Sound:
        return Sound.given(audio, sample_rate, self.model.sample_rate)

    def _listener(self) -> Listener[BeingScored]:
        config, rate = self.config, self.model.sample_rate
        window, context = (int(time / self.frame_seconds) for time in (config.window_seconds, config.context_seconds))

        def begin(audio: str) -> BeingScored:
            cutter = PassageCutter(self.spelling, window, ends_words=bool(self.decoder and self.decoder.guide))
            return BeingScored(audio, Stitcher(context, self.spelling.blank_id), cutter)

        def scored(recordings: Sequence[np.ndarray]) -> list[np.ndarray]:
            return scores_of(self.model, self.spelling, recordings, config.precision, self.device)

        return Listener(Cut(self.model, window, context, config.detector), begin, scored, rate, config.batch_seconds)

    def _written(
        self, sounds: Iterable[Sound], on_heard: OnHeard = lambda seconds: None
    ) -> Iterator[Transcript | Failure]:
        found: dict[int, _Found] = {}  # of the recordings that go on
        for group in self._listener().hear(sounds, on_heard):
            passages = [passage for one in group for passage in one.passages]
            answers = iter(self._decoded(passages))
            for one in group:
                parts = found.pop(id(one), []) + [(passage, next(answers)) for passage in one.passages]
                if not one.is_read:
                    found[id(one)] = parts
                elif one.error:
                    yield Failure(one.audio, one.error)
                else:
                    joined = join_answers(parts, self.spelling, self.config.num_best)
                    yield Transcript.of(one.audio, one.seconds, joined, self.frame_seconds)

    def _decoded(self, passages: list[Passage]) -> list[list[Hypothesis]]:
        """Passages of like length side by side."""
        decoder = self.decoder or Decoder(self.spelling)
        answers: list[list[Hypothesis]] = [[] for _ in passages]
        counts = np.array([len(one.log_probs) for one in passages], np.int64)
        order, start = np.argsort(-counts, kind="stable"), 0
        while start < len(order):
            longest = int(counts[order[start]])
            rows = order[start : start + max(1, _CELLS // max(1, longest * self.spelling.tokenizer.size))]
            start += len(rows)
            padded = np.zeros((len(rows), longest, self.spelling.tokenizer.size), np.float32)
            for place, row in enumerate(rows):
                padded[place, : counts[row]] = passages[row].log_probs
            for row, found in zip(rows, decoder(padded, Lengths(counts[rows]), self.config.num_best), strict=True):
                answers[row] = found
        return answers

    def _scored(self, sounds: Iterable[Sound]) -> Iterator[Scored | Failure]:
        found: dict[int, list[np.ndarray]] = {}
        whole = replace(self, config=replace(self.config, detector=None))
        for group in whole._listener().hear(sounds):
            for one in group:
                parts = found.pop(id(one), []) + [passage.log_probs for passage in one.passages]
                if not one.is_read:
                    found[id(one)] = parts
                elif one.error:
                    yield Failure(one.audio, one.error)
                else:
                    yield Scored(one.audio, one.seconds, self.frame_seconds, np.concatenate(parts))


def or_error(found: Answer | Failure) -> Answer:
    if isinstance(found, Failure):
        raise found.error
    return found
