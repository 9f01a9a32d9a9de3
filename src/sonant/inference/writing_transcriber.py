"""A recogniser at work that writes token by token: recordings in, texts with confidences and estimated times out.

A recording that the model can hear at once is heard whole, a longer one between pauses. Silence has no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import torch

from sonant.audio.pauses import segments
from sonant.audio.voice_activity import Detector, EnergyDetector, speech_spans
from sonant.base import config as configs
from sonant.base.errors import SonantError, UsageError
from sonant.checkpoints.bundle import Bundle, open_bundle
from sonant.decoding.hypotheses import Hypothesis
from sonant.decoding.passages import Passage, join_answers
from sonant.decoding.spelling import Spelling
from sonant.decoding.spreading import spread
from sonant.inference.devices import check_device
from sonant.inference.listener import Listener, OnHeard, Request, Sound, side_by_side
from sonant.inference.pieces import Piece
from sonant.inference.scoring import is_silent
from sonant.inference.transcriber import Failure, TranscriberConfig, or_error
from sonant.inference.transcripts import Transcript
from sonant.inference.writing import WritingConfig, Written, write
from sonant.models.writer import limits_of
from sonant.text.prompts import Prompt
from sonant.text.tokenizer import load_tokenizer

_NO_SCORES = np.zeros((0, 0), np.float32)


def saved_writing(bundle: Bundle) -> WritingConfig:
    """How a bundle wants texts to be written."""
    return configs.from_dict(WritingConfig, bundle.description.decoding, bundle.path("bundle.json"))


@dataclass(eq=False)
class BeingWritten:
    """A recording on its way."""

    audio: str
    seconds: float = 0.0
    is_read: bool = False
    error: SonantError | None = None
    answers: list[tuple[Passage, list[Hypothesis]]] = field(default_factory=list)

    def take(self, piece: Piece, found: list[Hypothesis]) -> None:
        self.answers.append((Passage(piece.segment, _NO_SCORES, is_new=True), found))

    def forget(self) -> None:
        """Nothing: answers are small, and joined when all are there."""


@dataclass(frozen=True)
class WritingTranscriber:
    model: Any
    spelling: Spelling
    prompt: Prompt
    writing: WritingConfig = field(default_factory=WritingConfig)
    config: TranscriberConfig = field(default_factory=TranscriberConfig)
    device: str = "cpu"

    @classmethod
    def open(
        cls,
        folder: str,
        device: str = "cpu",
        config: TranscriberConfig | None = None,
        writing: WritingConfig | None = None,
    ) -> WritingTranscriber:
        """The recogniser of a bundle; without `writing` it writes as the bundle says."""
        check_device(device)
        bundle = open_bundle(folder)
        bundle.require_task("seq2seq")
        config, writing = config or TranscriberConfig(), writing or saved_writing(bundle)
        if config.num_best > writing.beam:
            problem = f"{config.num_best} answers were asked for, the beam is {writing.beam} wide."
            raise UsageError("num_best", problem, f"Widen the beam: --beam {config.num_best}.")
        prompt = Prompt.of(bundle.description.text["prompt"])
        return cls(bundle.model().to(device), Spelling(load_tokenizer(folder)), prompt, writing, config, device)

    @property
    def frame_seconds(self) -> float:
        """The unit of times."""
        found: float = self.model.samples_per_frame / self.model.sample_rate
        return found

    @property
    def window_seconds(self) -> float:
        return min(self.config.window_seconds, limits_of(self.model).most_seconds or self.config.window_seconds)

    def transcribe(self, audio: str | np.ndarray, sample_rate: int | None = None) -> Transcript:
        """One recording: its place, or its samples (N,) in [-1, 1] at a rate."""
        return or_error(next(self._transcripts([Sound.given(audio, sample_rate, self.model.sample_rate)])))

    def transcribe_all(
        self, requests: Iterable[Request], on_heard: OnHeard = lambda seconds: None
    ) -> Iterator[Transcript | Failure]:
        """The answers in the order of the requests; reads ahead no further than a few batches."""
        return self._transcripts((Sound.of(one, self.model.sample_rate) for one in requests), on_heard)

    def answers(self, recordings: Sequence[np.ndarray]) -> list[list[Hypothesis]]:
        """Of each recording, samples (N,) at the model's rate, however long; best first."""
        heard = self._listener().hear(Sound("", [samples]) for samples in recordings)
        return [self._joined(one) for group in heard for one in group if one.is_read]

    def write_all(
        self, encoded: torch.Tensor, lengths: Any, recordings: Sequence[np.ndarray]
    ) -> list[list[Hypothesis]]:
        """Of recordings that were encoded side by side; where nobody speaks nothing is said."""
        seconds = [len(samples) / self.model.sample_rate for samples in recordings]
        texts = write(self.model, encoded, lengths, seconds, self.prompt, self.writing)
        return [self._told(some, samples) for some, samples in zip(texts, recordings, strict=True)]

    def _transcripts(
        self, sounds: Iterable[Sound], on_heard: OnHeard = lambda seconds: None
    ) -> Iterator[Transcript | Failure]:
        for group in self._listener().hear(sounds, on_heard):
            for one in group:
                if one.error:
                    yield Failure(one.audio, one.error)
                elif one.is_read:
                    yield Transcript.of(one.audio, one.seconds, self._joined(one), self.frame_seconds)

    def _joined(self, one: BeingWritten) -> list[Hypothesis]:
        return join_answers(one.answers, self.spelling, self.config.num_best)

    def _listener(self) -> Listener[BeingWritten]:
        return Listener(self._pieces, BeingWritten, self._written, self.model.sample_rate, self.config.batch_seconds)

    def _pieces(self, blocks: Iterable[np.ndarray]) -> Iterator[Piece]:
        """All of a recording, or what lies between its pauses."""
        held, unread = np.zeros(0, np.float32), iter(blocks)
        longest = int(self.window_seconds * self.model.sample_rate)
        for block in unread:
            held = np.concatenate([held, block])
            if len(held) > longest:
                break
        else:
            yield Piece(held, 0, 0, is_last=True, num_new=len(held))
            return
        unit = self.model.samples_per_frame
        for one in segments(chain([held], unread), self.model.sample_rate, self._detector, longest, unit):
            yield Piece(one.samples, one.first // unit, 0, is_last=True, num_new=len(one.samples))

    @property
    def _detector(self) -> Detector:
        return self.config.detector or EnergyDetector()

    @torch.no_grad()
    def _written(self, recordings: Sequence[np.ndarray]) -> list[list[Hypothesis]]:
        waveforms, lengths = side_by_side(recordings, self.device)
        kind = self.device.partition(":")[0]
        with nullcontext() if self.config.precision == "fp32" else torch.autocast(kind, torch.bfloat16):
            heard = self.model.hear(waveforms, lengths)
            return self.write_all(self.model.encode(heard), heard.lengths, recordings)

    def _told(self, texts: Sequence[Written], samples: np.ndarray) -> list[Hypothesis]:
        unit = self.model.samples_per_frame
        spans = speech_spans(samples, self.model.sample_rate, self._detector)
        if not spans or is_silent(samples):
            return [spread((), (), 0.0, [], self.spelling)]
        frames = [(first // unit, max(last // unit, first // unit + 1)) for first, last in spans]
        best = texts[: self.config.num_best]
        return [spread(one.ids, one.log_probs, one.log_prob, frames, self.spelling) for one in best]
