from __future__ import annotations

import numpy as np
import pytest
import torch

from sonant.audio.features.front_end import build_front_end
from sonant.audio.features.waveform import WaveformConfig
from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths


def test_each_utterance_is_normalised_over_its_own_samples_as_wav2vec_does(voiced) -> None:
    samples = voiced(0.5) * 0.3 + 0.2
    batch = torch.full((2, 9000), 0.9)  # padding that would shift the mean
    batch[0, :8000], batch[1, :3000] = torch.from_numpy(samples), torch.from_numpy(samples[:3000])
    features, lengths = build_front_end(WaveformConfig())(batch, Lengths(torch.tensor([8000, 3000])))
    assert lengths.values.tolist() == [8000, 3000]
    for row, own in zip(features, (samples, samples[:3000]), strict=True):
        exact = own.astype(np.float64)
        expected = (exact - exact.mean()) / np.sqrt(exact.var() + 1e-7)
        np.testing.assert_allclose(row[: len(own), 0], expected, atol=1e-6)
        assert not row[len(own) :].any()


def test_without_normalisation_the_samples_stay_as_they_are(voiced) -> None:
    samples = torch.from_numpy(voiced(0.1))
    features, _ = build_front_end(WaveformConfig(normalize=False))(samples[None], Lengths(torch.tensor([1000])))
    torch.testing.assert_close(features[0, :1000, 0], samples[:1000], atol=0, rtol=0)
    assert not features[0, 1000:].any()


def test_silence_stays_silence() -> None:
    features, _ = build_front_end(WaveformConfig())(torch.full((1, 100), 0.25), Lengths(torch.tensor([100])))
    assert not features.any()


def test_a_sample_rate_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        WaveformConfig(sample_rate=0)
    assert caught.value.where == "sample_rate"
