"""Probes read what is there, nothing that is not, and the same every time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sonant.base.errors import ConfigError
from sonant.evaluation.probe import Heard, read_labels, read_texts


def utterances(count: int, seed: int, *, signal: float) -> Heard:
    """Noise of 5 to 20 frames; a label moves one of the dimensions."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=count)
    frames = [rng.standard_normal((rng.integers(5, 20), 12)).astype(np.float32) for _ in range(count)]
    for made, label in zip(frames, labels, strict=True):
        made[:, label] += signal
    speakers = [f"s{number % 10}" for number in range(count)]
    return Heard([torch.from_numpy(made) for made in frames], speakers, [""] * count, list(labels))


def spelt(count: int, seed: int) -> Heard:
    """Texts of four letters that are the frames themselves, with silence between."""
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list("abcd"), rng.integers(2, 6))) for _ in range(count)]
    frames = []
    for text in texts:
        places = [number for letter in text for number in ("abcd".index(letter), 4)]
        frames.append(torch.eye(5)[places] + 0.01 * torch.from_numpy(rng.standard_normal((len(places), 5))).float())
    return Heard(frames, [f"s{number % 5}" for number in range(count)], texts, [None] * count)


def test_what_frames_say_plainly_is_read_and_what_they_do_not_say_is_not():
    assert read_labels(utterances(200, 0, signal=2.0), utterances(100, 1, signal=2.0)).figure > 0.97
    assert read_labels(utterances(200, 0, signal=0.0), utterances(100, 1, signal=0.0)).figure < 0.45


def test_the_same_frames_are_read_the_same_whatever_was_drawn_before():
    train, test = utterances(80, 0, signal=0.3), utterances(40, 1, signal=0.3)
    first = read_labels(train, test)
    torch.rand(7), np.random.rand(3)
    np.testing.assert_array_equal(first.scores, read_labels(train, test).scores)
    letters = [read_texts(spelt(20, 0), spelt(10, 1), steps=5) for _ in range(2)]
    np.testing.assert_array_equal(letters[0].scores, letters[1].scores)


def test_a_reading_has_an_interval_over_speakers():
    read = read_labels(utterances(200, 0, signal=0.5), utterances(100, 1, signal=0.5))
    interval = read.interval()
    assert interval.low < read.figure == interval.value < interval.high


def test_utterances_without_a_label_or_with_one_never_seen_are_left_out():
    train, test = utterances(50, 0, signal=2.0), utterances(20, 1, signal=2.0)
    test.labels[:3] = [None, "other", None]
    assert len(read_labels(train, test).scores) == 17


def test_texts_are_read_by_ctc_with_their_character_errors():
    read = read_texts(spelt(60, 0), spelt(20, 1), rate=0.05)
    assert read.figure == 0
    assert read.counts.sum() == sum(map(len, spelt(20, 1).texts))


def test_nothing_to_read_is_told():
    one = utterances(10, 0, signal=1.0)
    with pytest.raises(ConfigError, match=r"probe.label: 1 values were found, 2 are required"):
        read_labels(Heard(one.frames, one.speakers, one.texts, ["same"] * 10), one)
    with pytest.raises(ConfigError, match="no utterance of the test split has a label"):
        read_labels(one, Heard(one.frames, one.speakers, one.texts, [None] * 10))
    with pytest.raises(ConfigError, match=r"probe.text: no utterance has a text"):
        read_texts(one, one)
