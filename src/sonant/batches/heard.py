"""What frozen parts of a network heard, computed once: examples from the store instead of from recordings.

The first pass over an utterance reads, hears and keeps it; later passes, other seeds and other runs find it. A cached
training equals one that hears anew, since what is heard depends on nothing that is drawn.

Shapes: B utterances, S frames as heard, E their width, N samples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from sonant.base.errors import ManifestError
from sonant.base.lengths import Lengths
from sonant.batches.batch import SpeechBatch
from sonant.batches.collate import collate_speech
from sonant.batches.examples import SpeechExample, SpeechExamples
from sonant.batches.report import Tally
from sonant.batches.store import FeatureKey, Store
from sonant.corpus.manifest import Corpus
from sonant.corpus.utterance import Utterance

Hear = Callable[[np.ndarray], np.ndarray]  # samples (N,) to frames (S, E)
Precision = Literal["fp32", "bf16"]  # of what is kept
BYTES: dict[Precision, int] = {"fp32": 4, "bf16": 2}


@dataclass(frozen=True, kw_only=True)
class HeardBatch(SpeechBatch):
    """Without waveforms; `lengths` still count samples."""

    heard: Tensor  # (B, S, E), zero on padding
    heard_lengths: Lengths
    num_layers: int | None = None  # that it has gone through; None: the front end alone

    def tally(self) -> Tally:
        padded = len(self) * self.lengths.longest / self.sample_rate
        return replace(super().tally(), padded_seconds=padded)

    def select(self, rows: Sequence[int]) -> HeardBatch:
        chosen = super().select(rows)
        assert isinstance(chosen, HeardBatch)
        return replace(chosen, heard=chosen.heard[:, : chosen.heard_lengths.longest])


@dataclass(frozen=True)
class HeardExample:
    """An utterance as it was heard, beside everything else that is known of it."""

    rest: SpeechExample  # its waveform is that of silence as long as the utterance, and takes no memory
    frames: np.ndarray  # (S, E)
    num_layers: int | None = None  # that they have gone through; None: the front end alone


class HeardExamples:
    """Makes examples from the store; whatever is not there yet is heard and kept."""

    def __init__(
        self,
        examples: SpeechExamples,
        store: Store,
        hear: Hear,
        front_end: str,
        weights: str,
        *,
        num_layers: int | None = None,
        precision: Precision = "fp32",
    ) -> None:
        """`front_end` and `weights` are fingerprints of what hears: the front end, and so many layers behind it."""
        self.examples, self.store, self.hear = examples, store, hear
        self.front_end, self.weights = front_end, weights
        self.num_layers, self.precision = num_layers, precision

    def sizes(self, corpus: Corpus) -> np.ndarray:
        return self.examples.sizes(corpus)

    def __call__(self, utterance: Utterance, pass_number: int) -> HeardExample | None:
        layer = "heard" if self.num_layers is None else f"layer {self.num_layers}"
        kept, count = (self.store.get(self._key(utterance, name)) for name in (layer, "samples"))
        if kept is None or count is None:
            whole = self.examples(utterance, pass_number)
            if whole is None:
                return None
            kept, count = _packed(self.hear(whole.waveform), self.precision), np.array([len(whole.waveform)], np.int64)
            self.store.put(self._key(utterance, layer), kept)
            self.store.put(self._key(utterance, "samples"), count)
        silence = np.broadcast_to(np.zeros(1, np.float32), (int(count[0]),))
        rest = self.examples.annotated(utterance, pass_number, silence)
        return HeardExample(rest, _unpacked(kept), self.num_layers)

    def _key(self, utterance: Utterance, layer: str) -> bytes:
        content = utterance.extra.get("content")
        if not content:
            problem = f"'{utterance.id}' has no fingerprint of its sound."
            raise ManifestError(utterance.place, problem, "Prepare the corpus again, or set keep_heard to off.")
        assert utterance.seconds is not None
        return FeatureKey(
            content=str(content),
            start=utterance.start,
            seconds=utterance.seconds,
            channel=utterance.channel,
            front_end=self.front_end,
            weights=self.weights,
            layer=layer,
            precision=self.precision,
        ).digest()


def collate_heard(examples: Sequence[HeardExample], num_skipped: int = 0) -> HeardBatch:
    """A batch of one or more examples."""
    counts = [len(example.rest.waveform) for example in examples]
    bare = collate_speech([replace(one.rest, waveform=one.rest.waveform[:0]) for one in examples], num_skipped)
    lengths = [len(example.frames) for example in examples]
    heard = np.zeros((len(examples), max(lengths), examples[0].frames.shape[1]), np.float32)
    for target, example in zip(heard, examples, strict=True):
        target[: len(example.frames)] = example.frames
    known = {name: getattr(bare, name) for name in SpeechBatch.__dataclass_fields__}
    known |= {"lengths": Lengths(torch.tensor(counts, dtype=torch.int64))}
    return HeardBatch(
        **known,
        heard=torch.from_numpy(heard),
        heard_lengths=Lengths(torch.tensor(lengths, dtype=torch.int64)),
        num_layers=examples[0].num_layers,
    )


def _packed(frames: np.ndarray, precision: Precision) -> np.ndarray:
    """The upper halves of numbers, rounded, are those of bfloat16; numpy has no such kind."""
    if precision == "fp32":
        return frames
    halves: np.ndarray = torch.from_numpy(frames).bfloat16().view(torch.int16).numpy().view(np.uint16)
    return halves


def _unpacked(kept: np.ndarray) -> np.ndarray:
    return kept if kept.dtype == np.float32 else (kept.astype(np.uint32) << 16).view(np.float32)


def fingerprint(parts: Iterable[bytes]) -> str:
    """A short name for what hears."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
