"""A language of tones and a recogniser that knows it by heart: what is said, and when, is known to the frame.

A letter is a tone; a hum parts letters, silence parts words.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import nn

from sonant.base.lengths import Lengths, frames_after
from sonant.decoding.spelling import Spelling
from sonant.models.recognizer import Scores
from sonant.text.characters import CharacterTokenizer
from sonant.text.normalize import Normalizer, NormalizerConfig
from sonant.text.vocabulary import Vocabulary

RATE, KERNEL, STRIDE = 16000, 400, 320
LETTERS = "abcdef"
HUM, LETTER_SECONDS, HUM_SECONDS = 3200.0, 0.08, 0.06
PITCHES = [600.0 + 400.0 * place for place in range(len(LETTERS))]


def tones_spelling() -> Spelling:
    vocabulary = Vocabulary(symbols=("<pad>", "|", *LETTERS), blank="<pad>", word_delimiter="|")
    return Spelling(CharacterTokenizer(vocabulary, Normalizer(NormalizerConfig(steps=()))))


class ToneRecognizer(nn.Module):
    """The symbol of each frame of 20 ms is its loudest tone: silence parts words, the hum is the blank."""

    sample_rate, samples_per_frame = RATE, STRIDE

    def __init__(self) -> None:
        super().__init__()
        time = torch.arange(KERNEL) / RATE
        waves = [torch.exp(2j * torch.pi * pitch * time) for pitch in (HUM, *PITCHES)]
        self.register_buffer("waves", torch.stack(waves) * torch.hann_window(KERNEL) / KERNEL)

    def num_frames(self, num_samples):
        return frames_after(num_samples, (KERNEL,), (STRIDE,))

    def forward(self, waveforms: torch.Tensor, lengths: Lengths) -> Scores:
        frames = waveforms.unfold(1, KERNEL, STRIDE).to(torch.complex64)  # (B, T, K)
        tones = (frames @ self.waves.T).abs()  # (B, T, 7)
        silence = torch.full_like(tones[..., :1], 0.01)
        logits = torch.cat([tones[..., :1], silence, tones[..., 1:]], dim=2).clamp(min=1e-9).log() * 8
        return Scores(logits, lengths.after((KERNEL,), (STRIDE,)))


def said(num_words: int, seed: int, *, sample_rate: int = RATE, pause: tuple[float, float] = (0.15, 0.8)):
    """The samples (N,) of some words, and each with the seconds that it begins and ends at."""
    rng = np.random.default_rng(seed)
    parts, words, at = [np.zeros(sample_rate // 2)], [], 0.5
    for _ in range(num_words):
        text = "".join(rng.choice(list(LETTERS), rng.integers(1, 7)))
        pitches = [pitch for letter in text for pitch in (PITCHES[LETTERS.index(letter)], HUM)][:-1]
        lasts = [HUM_SECONDS if pitch == HUM else LETTER_SECONDS for pitch in pitches]
        edges = np.rint(np.cumsum([0.0, *lasts]) * sample_rate).astype(int)
        waves = [
            0.2 * np.sin(2 * np.pi * pitch * np.arange(first, behind) / sample_rate)
            for pitch, (first, behind) in zip(pitches, pairwise(edges.tolist()), strict=True)
        ]
        silence = np.zeros(int(rng.uniform(*pause) * sample_rate))
        words.append((text, at, at + edges[-1] / sample_rate))
        at += (edges[-1] + len(silence)) / sample_rate
        parts += [*waves, silence]
    return np.concatenate(parts).astype(np.float32), words
