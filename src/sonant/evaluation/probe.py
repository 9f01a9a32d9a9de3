"""Probes: what an encoder's frames say of something that it was never taught, read off by a linear layer.

The loss of pretraining tells little of how useful a model is, and falls also while it collapses. A probe keeps the
encoder as it is: a label from the mean frame of an utterance, or a text from its frames by CTC. Both start from the
same numbers every time, so that two probes differ only in the encoder.

Shapes: N utterances, T frames of one, D width, C classes or symbols.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.base.errors import ConfigError
from sonant.batches.batch import SpeechBatch
from sonant.metrics.edits import character_edits
from sonant.metrics.intervals import Interval, ratio_interval
from sonant.models.encoder import Encoder

_BLANK = 0


@dataclass(frozen=True)
class Read:
    """What a probe read: of each utterance how much was right, of how much, and by whom."""

    scores: np.ndarray  # (N,) right answers, or errors
    counts: np.ndarray  # (N,)
    speakers: list[str]

    @property
    def figure(self) -> float:
        return float(self.scores.sum() / self.counts.sum())

    def interval(self) -> Interval:
        """The figure and where it would lie with other speakers."""
        return ratio_interval(self.scores, self.counts, self.speakers)


@dataclass(frozen=True)
class Heard:
    """Utterances as an encoder hears them."""

    frames: list[Tensor]  # (T, D) each, of one layer
    speakers: list[str]
    texts: list[str]
    labels: list[object]


@torch.no_grad()
def heard(
    encoder: Encoder, batches: Iterable[SpeechBatch], layer: int, label: str = "", device: torch.device | str = "cpu"
) -> Heard:
    """The frames behind a layer: 0 is what enters the first, -1 what leaves the last."""
    found = Heard([], [], [], [])
    for batch in batches:
        moved = batch.to(device)
        encoded = encoder(moved.waveforms, moved.lengths)
        if not -len(encoded.states) <= layer < len(encoded.states):
            problem = f"{layer} was found; there are {len(encoded.states)} states, from 0 on."
            raise ConfigError("probe.layer", problem, "Name one of them; -1 is the last.")
        values: Sequence[object] = batch.labels.get(label, [None] * len(batch))
        if label and label not in batch.labels:
            raise ConfigError("probe.label", f"the corpus has no label '{label}'.", "Name one of its labels.")
        lengths = encoded.lengths.values.tolist()
        for row, (num_frames, value) in enumerate(zip(lengths, values, strict=True)):
            if num_frames:
                found.frames.append(encoded.states[layer][row, :num_frames].float().cpu())
                found.speakers.append(batch.speakers[row] or batch.ids[row])
                found.texts.append((batch.texts[row] or "") if batch.texts else "")
                found.labels.append(_plain(value))
    return found


def read_labels(train: Heard, test: Heard, *, strength: float = 1e-3) -> Read:
    """Classifies mean frames by logistic regression, fitted to its one optimum; accuracy on the test utterances."""
    classes = sorted({str(label) for label in train.labels if label is not None})
    if len(classes) < 2:
        raise ConfigError("probe.label", f"{len(classes)} values were found, 2 are required.", "Name another label.")
    rows, targets, _ = _labelled(train, classes)
    mean, deviation = rows.mean(dim=0), rows.std(dim=0) + 1e-6
    rows = (rows - mean) / deviation
    weight = torch.zeros(len(classes), rows.shape[1] + 1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight], max_iter=200, history_size=20, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        logits = F.linear(rows, weight[:, :-1], weight[:, -1])
        value = F.cross_entropy(logits, targets) + strength * weight[:, :-1].square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    rows, targets, speakers = _labelled(test, classes)
    guesses = F.linear((rows - mean) / deviation, weight[:, :-1], weight[:, -1]).argmax(dim=1)
    right = (guesses == targets).double().numpy()
    return Read(right, np.ones(len(right)), speakers)


def read_texts(train: Heard, test: Heard, *, steps: int = 300, batch_size: int = 16, rate: float = 0.01) -> Read:
    """Writes characters by CTC over single frames, best path; character errors on the test utterances."""
    symbols = sorted(set("".join(train.texts)))
    if not symbols:
        raise ConfigError("probe.text", "no utterance has a text.", "Probe a label, or name another corpus.")
    numbers = {symbol: number for number, symbol in enumerate(symbols, start=_BLANK + 1)}
    together = torch.cat(train.frames)
    mean, deviation = together.mean(dim=0), together.std(dim=0) + 1e-6
    layer = nn.Linear(together.shape[1], len(symbols) + 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimizer = torch.optim.AdamW(layer.parameters(), rate)
    usable = [number for number, text in enumerate(train.texts) if 0 < len(text) <= len(train.frames[number])]
    order = np.random.default_rng(0)
    with torch.enable_grad():
        for _ in range(steps):
            rows = order.choice(usable, min(batch_size, len(usable)), replace=False)
            frames = nn.utils.rnn.pad_sequence([(train.frames[row] - mean) / deviation for row in rows])  # (T, B, D)
            targets = [torch.tensor([numbers[symbol] for symbol in train.texts[row]]) for row in rows]
            loss = F.ctc_loss(
                layer(frames).log_softmax(dim=-1),
                torch.cat(targets),
                torch.tensor([len(train.frames[row]) for row in rows]),
                torch.tensor([len(target) for target in targets]),
                zero_infinity=True,
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    errors = []
    for frames, text in zip(test.frames, test.texts, strict=True):
        path = layer((frames - mean) / deviation).argmax(dim=-1).unique_consecutive().tolist()
        written = "".join(symbols[number - 1] for number in path if number != _BLANK)
        errors.append(character_edits(text, written))
    return Read(
        np.array([edits.errors for edits in errors], float),
        np.array([edits.num_reference for edits in errors], float),
        test.speakers,
    )


def _labelled(utterances: Heard, classes: Sequence[str]) -> tuple[Tensor, Tensor, list[str]]:
    """Mean frames (N, D) and classes (N,) of those that have a label known in training, and their speakers."""
    known = [number for number, label in enumerate(utterances.labels) if str(label) in classes]
    if not known:
        raise ConfigError("probe.label", "no utterance of the test split has a label.", "Name another split.")
    rows = torch.stack([utterances.frames[number].double().mean(dim=0) for number in known])
    targets = torch.tensor([classes.index(str(utterances.labels[number])) for number in known])
    return rows, targets, [utterances.speakers[number] for number in known]


def _plain(value: object) -> object:
    """A missing number is no class."""
    if isinstance(value, Tensor):
        number = value.item()
        return None if math.isnan(number) else number
    return value
