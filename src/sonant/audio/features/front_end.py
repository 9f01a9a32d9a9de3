"""Waveforms in, features out, the same however they are batched, chopped or exported.

front_end = build_front_end(FbankConfig())
features, lengths = front_end(waveforms, Lengths(num_samples))  # padding changes nothing; padded frames are 0

stream = front_end.stream()  # or as the samples come in
features = [stream.push(samples), stream.push(more), stream.finish()]

Shapes: B utterances, N samples, T frames, W samples a frame, P samples of the past, D features.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sonant.audio.features.bands import Bands
from sonant.audio.features.fbank import FbankConfig
from sonant.audio.features.framing import LiveFrames
from sonant.audio.features.log_mel import LogMelConfig
from sonant.audio.features.utterance import limited, normalized, padded_with_silence
from sonant.audio.features.waveform import WaveformConfig
from sonant.base.errors import UsageError
from sonant.base.lengths import Count, Lengths

FrontEndConfig: TypeAlias = FbankConfig | LogMelConfig | WaveformConfig
_STEPS_OF_16_BITS = 32768


def build_front_end(config: FrontEndConfig) -> FrontEnd:
    """The front end that a config describes; it has no parameters and adds nothing to a checkpoint."""
    match config:
        case FbankConfig():
            return FrontEnd(config, Bands(config.spectrum()), dither=config.dither / _STEPS_OF_16_BITS)
        case LogMelConfig():
            return FrontEnd(
                config,
                Bands(config.spectrum()),
                normalizes=config.normalize_waveform,
                fewest_samples=config.fewest_samples,
                dynamic_range=config.dynamic_range,
            )
        case WaveformConfig():
            return FrontEnd(config, nn.Identity(), normalizes=config.normalize)


class FrontEnd(nn.Module):
    """One definition of what a model hears."""

    def __init__(
        self,
        config: FrontEndConfig,
        features_of_frames: nn.Module,
        *,
        dither: float = 0.0,
        normalizes: bool = False,
        fewest_samples: int = 0,
        dynamic_range: float | None = None,
    ) -> None:
        super().__init__()
        self.config, self.framing = config, config.framing
        self.features_of_frames = features_of_frames
        self.dither, self.normalizes = dither, normalizes
        self.fewest_samples, self.dynamic_range = fewest_samples, dynamic_range

    @property
    def width(self) -> int:
        return self.config.width

    @property
    def samples_per_frame(self) -> int:
        """From one frame to the next."""
        return self.framing.shift

    @property
    def frame_ms(self) -> float:
        return 1000 * self.framing.shift / self.config.sample_rate

    def num_frames(self, num_samples: Count) -> Count:
        """The frames of so many samples: a number, an array or a tensor of them."""
        missing = self.fewest_samples - num_samples
        num_frames: Count = self.framing.num_frames(num_samples + missing * (missing > 0))
        return num_frames

    def forward(self, waveforms: Tensor, lengths: Lengths) -> tuple[Tensor, Lengths]:
        """Maps (B, N) samples in [-1, 1] to (B, T, D) features."""
        waveforms, num_samples = self._prepared(waveforms.float(), lengths.values)
        num_frames = self.framing.num_frames(num_samples)  # (B,)
        longest = self.framing.num_frames(waveforms.shape[1])  # T
        features = self.features_of_frames(self._frames(waveforms, num_samples)[:, :longest])  # (B, T, D)
        if self.dynamic_range is not None:
            features = limited(features, num_frames, self.dynamic_range)
        is_padding = ~Lengths(num_frames).mask(longest).unsqueeze(2)  # (B, T, 1)
        return features.masked_fill(is_padding, 0), Lengths(num_frames)

    def analyse(self, samples: Tensor) -> Tensor:
        """Maps (B, N) samples without edges, all of them of the recording, to the (B, T, D) features inside."""
        features: Tensor = self.features_of_frames(samples.float().unfold(1, self.framing.window, self.framing.shift))
        return features

    def step(self, past: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
        """Maps (B, P) and the next (B, k·shift) samples to (B, k, D) features and the next past: a live graph.

        P is `framing.past_samples`; the first past is the first P samples that the first frame sees.
        """
        self._require_live()
        seen = torch.cat([past, samples], dim=1)
        return self.analyse(seen), seen[:, seen.shape[1] - past.shape[1] :]

    def stream(self) -> FeatureStream:
        """Begins one recording, live."""
        self._require_live()
        return FeatureStream(self)

    def _prepared(self, waveforms: Tensor, num_samples: Tensor) -> tuple[Tensor, Tensor]:
        if self.training and self.dither:
            waveforms = waveforms + self.dither * torch.randn_like(waveforms)
        if self.normalizes:
            waveforms = normalized(waveforms, num_samples)
        if self.fewest_samples:
            waveforms, num_samples = padded_with_silence(waveforms, num_samples, self.fewest_samples)
        return waveforms, num_samples

    def _frames(self, waveforms: Tensor, num_samples: Tensor) -> Tensor:
        """(B, T or more, W)"""
        if self.framing.window == 1:
            return waveforms.unsqueeze(2)
        return self._with_edges(waveforms, num_samples).unfold(1, self.framing.window, self.framing.shift)

    def _with_edges(self, waveforms: Tensor, num_samples: Tensor) -> Tensor:
        """What the frames see, from the first sample of the first frame on, and never less than a window."""
        framing = self.framing
        if framing.edges == "cut":
            return F.pad(waveforms, (0, framing.window))
        ends = num_samples.clamp(min=framing.fewest_samples).unsqueeze(1)  # (B, 1)
        before = torch.arange(-framing.before, 0, device=waveforms.device)
        after = ends + torch.arange(framing.after, device=waveforms.device)  # (B, after)
        waveforms = F.pad(waveforms, (0, framing.fewest_samples + framing.after + framing.window))
        head = waveforms.gather(1, framing.seen(before, ends))
        tail = waveforms.gather(1, framing.seen(after, ends))
        return torch.cat([head, waveforms.scatter(1, after, tail)], dim=1)

    def _require_live(self) -> None:
        settings = self.config.whole_utterance_settings
        if settings:
            raise UsageError(
                f"front end '{self.config.kind}'",
                f"'{settings[0]}' needs each utterance to its end, so features cannot be made while it is spoken.",
                f"Train without '{settings[0]}' to run live, or cut the audio into segments and give each as a whole.",
            )


class FeatureStream:
    """One recording as it comes in: the frames of any chopping are those of the whole."""

    def __init__(self, front_end: FrontEnd) -> None:
        self._front_end = front_end
        self._frames = LiveFrames(front_end.framing)
        self._device = next((table.device for table in front_end.buffers()), torch.device("cpu"))

    def push(self, samples: np.ndarray | Tensor) -> Tensor:
        """Takes the next samples (N,), however many, and gives the frames (T, D) that they complete."""
        samples = samples.detach().cpu().numpy() if isinstance(samples, Tensor) else np.asarray(samples)
        return self._features(self._frames.push(samples))

    def finish(self) -> Tensor:
        """Gives the frames (T, D) that reach beyond the end."""
        return self._features(self._frames.finish())

    def _features(self, samples: np.ndarray) -> Tensor:
        if len(samples) == 0:
            return torch.zeros(0, self._front_end.width, device=self._device)
        return self._front_end.analyse(torch.from_numpy(samples).to(self._device)[None])[0]
