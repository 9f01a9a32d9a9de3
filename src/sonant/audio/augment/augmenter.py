"""Applies the config's list in its order: what an utterance becomes depends on seed, epoch and id alone.

augmentations:
- {kind: speed, factors: [0.9, 1.0, 1.1]}
- {kind: noise, corpus: corpora/street, snr: [5, 25], probability: 0.5}
- {kind: spec_augment}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sonant.audio.augment.arrangement import QuietEnds, Repeat, Reverse, TimeMask, TimeShift, TrimSilence
from sonant.audio.augment.codec import Codec
from sonant.audio.augment.distortion import Aliasing, BandStop, BitCrush, Clipping, TanhDistortion
from sonant.audio.augment.level import Gain, GainTransition, PeakNormalization, Polarity
from sonant.audio.augment.noise import GaussianNoise, Noise, NoiseFloor, Sounds
from sonant.audio.augment.reverberation import ImpulseResponse, Room
from sonant.audio.augment.spectrogram import SpecAugment, SpecSub, SpecTrim
from sonant.audio.augment.speed import Pitch, Speed, Tempo
from sonant.base.errors import ConfigError
from sonant.base.randomness import generator_for

CorpusAugmentation = Noise | ImpulseResponse
WaveformAugmentation = (
    Speed
    | Tempo
    | Pitch
    | Gain
    | GainTransition
    | PeakNormalization
    | Polarity
    | GaussianNoise
    | NoiseFloor
    | Room
    | Clipping
    | TanhDistortion
    | BitCrush
    | Aliasing
    | BandStop
    | TimeShift
    | TimeMask
    | Reverse
    | Repeat
    | TrimSilence
    | QuietEnds
    | Codec
)
FeatureAugmentation = SpecAugment | SpecSub | SpecTrim
Augmentation = WaveformAugmentation | CorpusAugmentation | FeatureAugmentation


class Augmenter:
    """`sounds` opens a corpus of noises or impulse responses by the location that the config names."""

    def __init__(
        self, augmentations: Sequence[Augmentation], seed: int, sounds: Callable[[str], Sounds] | None = None
    ) -> None:
        self.augmentations, self.seed = tuple(augmentations), seed
        self._sounds = _open_sounds(self.augmentations, sounds)

    def waveform(self, samples: np.ndarray, sample_rate: int, *, epoch: int, id: str) -> np.ndarray:
        """float32 (N,) to float32 (M,); the input is not changed, but may be what comes back."""
        for one, rng in self._chosen(epoch, id):
            if not samples.size or isinstance(one, FeatureAugmentation):
                continue
            if isinstance(one, CorpusAugmentation):
                samples = one.apply(samples, sample_rate, rng, self._sounds[one.corpus])
            else:
                samples = one.apply(samples, sample_rate, rng)
        return samples

    def features(self, features: np.ndarray, *, epoch: int, id: str) -> np.ndarray:
        """float32 (T, D) to float32 (U, D) with U ≤ T; the input is not changed, but may be what comes back."""
        for one, rng in self._chosen(epoch, id):
            if features.size and isinstance(one, FeatureAugmentation):
                features = one.apply(features, rng)
        return features

    @property
    def changes_waveform(self) -> bool:
        return not all(isinstance(one, FeatureAugmentation) for one in self.augmentations)

    @property
    def changes_features(self) -> bool:
        return any(isinstance(one, FeatureAugmentation) for one in self.augmentations)

    def seconds_after(self, seconds: float) -> float:
        """The longest that an utterance of so many seconds can become, but for the rounding up to a sample."""
        for one in self.augmentations:
            if isinstance(one, Speed | Tempo):
                seconds *= max(1.0, 1 / min(one.factors))
            elif isinstance(one, Repeat | QuietEnds):
                seconds = one.longest(seconds)
        return seconds

    @property
    def longest_factor(self) -> float:
        """The most that any utterance can grow by; long ones may be held to less by `seconds_after`."""
        shortest = 1e-6  # a second that is repeated doubles, an hour hardly grows
        return self.seconds_after(shortest) / shortest

    @property
    def shortest_factor(self) -> float:
        """The most that speech can shrink by, silence that is trimmed aside: at most 1."""
        factors = [max(one.factors) for one in self.augmentations if isinstance(one, Speed | Tempo)]
        return float(np.prod([min(1.0, 1 / factor) for factor in factors]))

    @property
    def most_frames_trimmed(self) -> int:
        """Frames that may be missing at the end of the features."""
        return sum(one.width for one in self.augmentations if isinstance(one, SpecTrim))

    def _chosen(self, epoch: int, id: str) -> Iterator[tuple[Augmentation, np.random.Generator]]:
        """Those whose turn it is; each has a generator of its own, so that none shifts the draws of another."""
        for position, one in enumerate(self.augmentations):
            rng = generator_for(self.seed, epoch, id, f"{position}/{one.kind}")
            if rng.random() < one.probability:
                yield one, rng


def _open_sounds(augmentations: Sequence[Augmentation], sounds: Callable[[str], Sounds] | None) -> dict[str, Sounds]:
    opened: dict[str, Sounds] = {}
    for position, one in enumerate(augmentations):
        if not isinstance(one, CorpusAugmentation) or one.corpus in opened:
            continue
        where = f"augmentation {position + 1} ({one.kind})"
        if sounds is None:
            problem = f"it needs the corpus '{one.corpus}', but nothing here can open one."
            raise ConfigError(where, problem, "Remove it, or hand `sounds` to the Augmenter.")
        opened[one.corpus] = sounds(one.corpus)
        if not len(opened[one.corpus]):
            raise ConfigError(where, f"the corpus '{one.corpus}' is empty.", "Name one that holds recordings.")
    return opened
