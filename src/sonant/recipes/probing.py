"""A probe beside a training: which corpus, which label or text, which layer of the encoder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from sonant.base.bounds import Within, check_fields
from sonant.batches.bucketing import SortingConfig
from sonant.batches.collate import collate_speech
from sonant.batches.loader import Loader
from sonant.corpus.manifest import open_corpus
from sonant.evaluation.probe import Heard, Read, heard, read_labels, read_texts
from sonant.models.encoder import Encoder
from sonant.recipes.speech import speech_source

PROBE = ("probe", "probe_low", "probe_high")  # the figure, and where it would lie with other speakers


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """A linear layer that reads a label, or a text, off the frozen encoder at each validation."""

    corpus: str = ""  # empty: no probe
    label: str = ""  # empty: texts, by CTC
    train_split: str = "train"
    test_split: str = "dev"
    layer: int = -1  # 0: what enters the first layer; -1: what leaves the last
    max_utterances: Annotated[int, Within(2, 1e6)] = 2000  # of each split, the first so many

    def __post_init__(self) -> None:
        check_fields(self)


def probe_figures(encoder: Encoder, config: ProbeConfig, device: Any = "cpu") -> dict[str, float]:
    """What stands beside losses; one speaker alone has no interval."""
    found = probed(encoder, config, device=device).interval()
    values = [found.value] if math.isnan(found.low) else [found.value, found.low, found.high]
    return dict(zip(PROBE, values, strict=False))


def probed(encoder: Encoder, config: ProbeConfig, *, device: Any = "cpu") -> Read:
    """Accuracy of a label, or character errors of texts, with what is needed for an interval over speakers."""
    corpus = open_corpus(config.corpus)

    def listened(split: str) -> Heard:
        found = corpus.split(split)
        found = found.where([number < config.max_utterances for number in range(len(found))])
        with Loader(speech_source([found], collate_speech, SortingConfig(max_seconds=60.0), None)) as loader:
            return heard(encoder, loader, config.layer, config.label, device)

    read = read_labels if config.label else read_texts
    return read(listened(config.train_split), listened(config.test_split))
