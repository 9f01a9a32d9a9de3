"""A performance becomes a recording: pauses, loudness and distortion, and where each word then lies."""

from __future__ import annotations

import io
import os

import numpy as np

from sonant.audio.resample import resample
from sonant.base.randomness import generator_for
from sonant.corpus.demo.plan import Performance
from sonant.corpus.demo.synthesizer import SAMPLE_RATE, Word, synthesize
from sonant.corpus.demo.voices import quality_of

WRITTEN_RATE = 16000
_PAUSES = ((0.0, 0.0), (0.10, 0.25), (0.25, 0.50), (0.50, 1.00))  # seconds, by degree
_DRIVES = (0.0, 4.0, 10.0, 25.0)  # gain before the bend, by degree
_FADE = 110  # samples (5 ms): words cut apart must not click

Times = list[tuple[str, float, float]]  # word, start and end in seconds


def speak(performance: Performance, voices: str, seed: int) -> tuple[np.ndarray, Times]:
    """Samples (N,) float32 at WRITTEN_RATE, with the truth about every word."""
    symptoms = performance.symptoms
    quality = quality_of(symptoms.hoarse, is_whispered=bool(symptoms.whispered))
    spoken, words = synthesize(performance.request, os.path.join(voices, quality))
    generator = generator_for(seed, 0, performance.id, "performance")
    samples, words = _with_pauses(spoken / 32768.0, words, _PAUSES[symptoms.halting], generator)
    samples = resample(samples.astype(np.float32), SAMPLE_RATE, WRITTEN_RATE)
    samples *= generator.uniform(0.3, 0.9) / max(float(np.abs(samples).max()), 1e-3)
    if symptoms.distorted:
        drive, peak = _DRIVES[symptoms.distorted], float(np.abs(samples).max())
        samples = (np.tanh(samples * (drive / peak)) * (peak / np.tanh(drive))).astype(np.float32)
    return samples, [(word.text, word.first / SAMPLE_RATE, word.last / SAMPLE_RATE) for word in words]


def _with_pauses(
    samples: np.ndarray, words: list[Word], seconds: tuple[float, float], generator: np.random.Generator
) -> tuple[np.ndarray, list[Word]]:
    """Silence between words, where the degree asks for it; the words' places move along."""
    if not seconds[1]:
        return samples, words
    pieces, moved, added, position = [], [], 0, 0
    fade = np.linspace(0.0, 1.0, _FADE)
    for word in words:
        if word.first > 0:
            silence = round(generator.uniform(*seconds) * SAMPLE_RATE)
            before = samples[position : word.first].copy()
            before[-_FADE:] *= fade[::-1][-len(before) :]
            pieces += [before, np.zeros(silence)]
            added, position = added + silence, word.first
        moved.append(Word(word.text, word.first + added, word.last + added))
    return np.concatenate([*pieces, samples[position:]]), moved


def as_flac(samples: np.ndarray) -> bytes:
    """The bytes of a 16-bit file."""
    import soundfile

    packed = io.BytesIO()
    soundfile.write(packed, samples, WRITTEN_RATE, format="FLAC", subtype="PCM_16")
    return packed.getvalue()
