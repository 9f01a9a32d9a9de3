"""A recogniser at work: recordings in, texts with times out.

    transcriber = Transcriber.open("run/bundle")
    transcriber.transcribe("talk.flac").text
    transcriber.align("talk.flac", "What is said in it.").words
    for found in transcriber.transcribe_all(places):     # as many at a time as fill a batch; a bad file is a failure

An utterance has the same text whatever stands beside it. A long recording is heard in windows that overlap, of which
only the inner frames are used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import torch

from sonant.audio.resample import resample
from sonant.audio.waveform import read_waveform
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import SonantError, TextError, UsageError
from sonant.base.lengths import Lengths
from sonant.checkpoints.bundle import open_bundle
from sonant.decoding.decoder import Decoder, DecodingConfig
from sonant.decoding.hypotheses import Hypothesis
from sonant.decoding.spelling import Spelling
from sonant.decoding.windows import Window, WindowConfig, plan_windows, stitch
from sonant.inference.aligner import align
from sonant.inference.decoding import Say, open_decoder, saved_decoding, silent
from sonant.inference.scored import Scored
from sonant.inference.transcripts import Transcript
from sonant.text.tokenizer import load_tokenizer


@dataclass(frozen=True, kw_only=True)
class TranscriberConfig:
    """How recordings are cut."""

    num_best: Annotated[int, Within(1, 1000)] = 1  # answers for each recording
    window_seconds: Annotated[float, Within(1, 1e5)] = 30.0  # longer recordings are heard in such windows
    context_seconds: Annotated[float, Within(0, 1e5)] = 4.0  # of a window, on each side, heard and not used
    batch_seconds: Annotated[float, Within(1, 1e6)] = 120.0  # of a batch, padding included

    def __post_init__(self) -> None:
        check_fields(self)
        if 2 * self.context_seconds >= self.window_seconds:
            problem = f"{self.context_seconds:g} s on both sides leave nothing of {self.window_seconds:g} s."
            raise UsageError("context_seconds", problem, "Give less than half of window_seconds.")


@dataclass(frozen=True)
class Request:
    """A recording, or a stretch of one."""

    audio: str
    start: float = 0.0
    seconds: float | None = None
    channel: int | None = None
    native_rate: int | None = None  # of bare arrays of numbers in datasets


@dataclass(frozen=True)
class Failure:
    """A recording that could not be heard."""

    audio: str
    error: SonantError


@dataclass(frozen=True)
class _Piece:
    """What goes into a batch: a window of one of the recordings at hand."""

    recording: int
    window: Window
    samples: np.ndarray


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
        return self._transcript(self.score(audio, sample_rate))

    def transcribe_all(self, requests: Iterable[Request]) -> Iterator[Transcript | Failure]:
        """The answers in the order of the requests; reads ahead no further than a few batches."""
        for one in self.score_all(requests):
            yield one if isinstance(one, Failure) else self._transcript(one)

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
        if isinstance(audio, str):
            return self._scored([audio], [self._heard(Request(audio))])[0]
        if sample_rate is None:
            raise UsageError("samples", "they come without their rate.", "Give sample_rate.")
        samples = np.ascontiguousarray(audio, np.float32)
        if samples.ndim != 1:
            problem = f"samples of the shape {samples.shape} were given, (N,) is required."
            raise UsageError("samples", problem, "Give one channel, or the mean of all.")
        return self._scored([""], [resample(samples, sample_rate, self.model.sample_rate)])[0]

    def score_all(self, requests: Iterable[Request]) -> Iterator[Scored | Failure]:
        """Scores in the order of the requests; as many recordings are read ahead as fill a few batches."""
        held: list[tuple[Request, np.ndarray | Failure]] = []
        num_samples, most = 0, 4 * self.config.batch_seconds * self.model.sample_rate
        for request in requests:
            try:
                found: np.ndarray | Failure = self._heard(request)
            except SonantError as error:
                found = Failure(request.audio, error)
            held.append((request, found))
            num_samples += len(found) if isinstance(found, np.ndarray) else 0
            if num_samples >= most:
                yield from self._answered(held)
                held, num_samples = [], 0
        yield from self._answered(held)

    def log_probs(self, recordings: Sequence[np.ndarray]) -> list[np.ndarray]:
        """(T, V) of each recording: samples (N,) at the model's rate."""
        pieces = [piece for number, samples in enumerate(recordings) for piece in self._pieces(number, samples)]
        scores: dict[tuple[int, int], np.ndarray] = {}
        for batch in self._batches(pieces):
            for piece, found in zip(batch, self._score(batch), strict=True):
                scores[piece.recording, piece.window.start] = found
        width = self.spelling.tokenizer.size
        whole = []
        for number in range(len(recordings)):
            windows = [piece.window for piece in pieces if piece.recording == number]
            parts = [scores[number, window.start] for window in windows]
            whole.append(stitch(windows, parts) if windows else np.zeros((0, width), np.float32))
        return whole

    def _heard(self, request: Request) -> np.ndarray:
        samples, _ = read_waveform(
            request.audio,
            start=request.start,
            seconds=request.seconds,
            channel=request.channel,
            sample_rate=self.model.sample_rate,
            native_rate=request.native_rate,
        )
        return samples

    def _answered(self, held: Sequence[tuple[Request, np.ndarray | Failure]]) -> Iterator[Scored | Failure]:
        good = [(request, found) for request, found in held if isinstance(found, np.ndarray)]
        scored = iter(self._scored([one.audio for one, _ in good], [samples for _, samples in good]))
        for _, found in held:
            yield found if isinstance(found, Failure) else next(scored)

    def _scored(self, names: Sequence[str], recordings: Sequence[np.ndarray]) -> list[Scored]:
        return [
            Scored(name, len(samples) / self.model.sample_rate, self.frame_seconds, log_probs)
            for name, samples, log_probs in zip(names, recordings, self.log_probs(recordings), strict=True)
        ]

    def _transcript(self, scored: Scored) -> Transcript:
        return Transcript.of(scored.audio, scored.seconds, self._decoded(scored.log_probs), self.frame_seconds)

    def _decoded(self, log_probs: np.ndarray) -> Sequence[Hypothesis]:
        decoder = self.decoder or Decoder(self.spelling)
        return decoder(log_probs[None], Lengths(np.array([len(log_probs)])), self.config.num_best)[0]

    def _pieces(self, number: int, samples: np.ndarray) -> Iterator[_Piece]:
        per_second = 1 / self.frame_seconds
        frames, context = (
            int(seconds * per_second) for seconds in (self.config.window_seconds, self.config.context_seconds)
        )
        windows = plan_windows(self.model.num_frames(len(samples)), WindowConfig(frames=frames, context=context))
        for window in windows:
            first = window.start * self.model.samples_per_frame
            count = len(samples) if len(windows) == 1 else self._samples_for(window.end - window.start)
            yield _Piece(number, window, samples[first : first + count])

    def _samples_for(self, num_frames: int) -> int:
        """The fewest samples that give so many frames."""
        most = (num_frames + 8) * self.model.samples_per_frame
        while self.model.num_frames(most) < num_frames:
            most *= 2
        low, high = 0, int(most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.model.num_frames(middle) >= num_frames else (middle, high)
        return high

    def _batches(self, pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
        """The longest first; those that are much shorter go into another batch."""
        most = self.config.batch_seconds * self.model.sample_rate
        batch: list[_Piece] = []
        for piece in sorted(pieces, key=lambda one: -len(one.samples)):
            longest = len(batch[0].samples) if batch else 0
            if batch and ((len(batch) + 1) * longest > most or 2 * len(piece.samples) < longest):
                yield batch
                batch = []
            batch.append(piece)
        if batch:
            yield batch

    @torch.no_grad()
    def _score(self, batch: Sequence[_Piece]) -> list[np.ndarray]:
        counts = [len(piece.samples) for piece in batch]
        padded = np.zeros((len(batch), max(counts)), np.float32)
        for row, piece in zip(padded, batch, strict=True):
            row[: len(piece.samples)] = piece.samples
        lengths = Lengths(torch.tensor(counts, device=self.device))
        scores = self.model(torch.from_numpy(padded).to(self.device), lengths)
        log_probs, frames = scores.log_probs.cpu().numpy(), scores.lengths.values.tolist()
        return [one[:num_frames] for one, num_frames in zip(log_probs, frames, strict=True)]
