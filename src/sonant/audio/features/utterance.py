"""What is measured over a whole utterance, on its own samples and frames, never on padding.

Shapes: B utterances, N samples, T frames, D features.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sonant.base.lengths import Lengths

_LEAST_VARIANCE = 1e-7  # as wav2vec 2.0 adds it


def normalized(waveforms: Tensor, num_samples: Tensor) -> Tensor:
    """Each waveform (B, N) with mean 0 and variance 1; padding becomes 0."""
    is_padding = ~Lengths(num_samples).mask(waveforms.shape[1])
    counts = num_samples.clamp(min=1).unsqueeze(1)  # (B, 1)
    # As few copies as gradients allow: fresh memory costs more than arithmetic (LOG.md). Torch sums in branches, so
    # that minutes of float32 lose nothing that counts.
    samples = waveforms.float().masked_fill(is_padding, 0)
    samples -= samples.sum(dim=1, keepdim=True) / counts
    samples.masked_fill_(is_padding, 0)
    variances = samples.square().sum(dim=1, keepdim=True) / counts  # (B, 1)
    return samples * (variances + _LEAST_VARIANCE).rsqrt()


def padded_with_silence(waveforms: Tensor, num_samples: Tensor, fewest_samples: int) -> tuple[Tensor, Tensor]:
    """The same waveforms, those with fewer samples continued in silence that counts as theirs."""
    is_padding = ~Lengths(num_samples).mask(waveforms.shape[1])
    missing = torch.sym_max(0, fewest_samples - waveforms.shape[1])  # type: ignore[no-untyped-call]
    waveforms = F.pad(waveforms.masked_fill(is_padding, 0), (0, missing))
    return waveforms, num_samples.clamp(min=fewest_samples)


def limited(features: Tensor, num_frames: Tensor, reach: float) -> Tensor:
    """Lifts each feature (B, T, D) to at most `reach` below the largest of its utterance."""
    is_padding = ~Lengths(num_frames).mask(features.shape[1]).unsqueeze(2)  # (B, T, 1)
    known = F.pad(features.masked_fill(is_padding, -torch.inf), (0, 0, 0, 1), value=-torch.inf)  # T may be 0
    return features.maximum(known.amax(dim=(1, 2), keepdim=True) - reach)
