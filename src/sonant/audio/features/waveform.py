"""The waveform itself: what wav2vec 2.0 and its kin hear. A frame is a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sonant.audio.features.framing import Framing
from sonant.audio.features.options import check_positive


@dataclass(frozen=True, kw_only=True)
class WaveformConfig:
    """`normalize` as the checkpoint was trained: its preprocessor_config.json calls it do_normalize."""

    kind: Literal["waveform"] = "waveform"
    sample_rate: int = 16000
    normalize: bool = True  # each utterance to mean 0 and variance 1, over its own samples

    def __post_init__(self) -> None:
        check_positive(sample_rate=self.sample_rate)

    @property
    def whole_utterance_settings(self) -> tuple[str, ...]:
        """The settings that need an utterance to its end, and so cannot run live."""
        return ("normalize",) if self.normalize else ()

    @property
    def framing(self) -> Framing:
        return Framing(window=1, shift=1)

    @property
    def width(self) -> int:
        return 1
