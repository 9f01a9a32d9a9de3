from __future__ import annotations

import numpy as np
import pytest
import torch

from sonant.audio.cmvn import CmvnStatistics
from sonant.audio.features.cmvn import GlobalCmvn, UtteranceCmvn, statistics_of
from sonant.base.lengths import Lengths


@pytest.fixture
def features() -> tuple[torch.Tensor, Lengths]:
    """Two utterances whose features have a mean and a deviation, and a third without frames; NaN in the padding."""
    batch = 3 + 2 * torch.from_numpy(np.random.default_rng(0).standard_normal((3, 50, 4)).astype(np.float32))
    batch[1, 20:] = torch.nan
    batch[2] = torch.nan
    return batch, Lengths(torch.tensor([50, 20, 0]))


def rows(batch: torch.Tensor, lengths: Lengths) -> list[np.ndarray]:
    return [row[:count].numpy() for row, count in zip(batch, lengths.values, strict=True)]


def test_a_padded_batch_counts_its_own_frames_only(features) -> None:
    batch, lengths = features
    total = sum(map(CmvnStatistics.of, rows(batch, lengths)), start=CmvnStatistics.none(4))
    ours = statistics_of(batch, lengths)
    assert ours.num_frames == total.num_frames == 70
    np.testing.assert_allclose(ours.sums, total.sums)
    np.testing.assert_allclose(ours.squares, total.squares)


def test_the_corpus_has_mean_0_and_variance_1_behind_its_own_statistics(features) -> None:
    batch, lengths = features
    normalised = GlobalCmvn.of(statistics_of(batch, lengths))(batch, lengths)
    frames = np.concatenate(rows(normalised, lengths))
    np.testing.assert_allclose(frames.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(frames.std(axis=0), 1, atol=1e-6)
    assert not normalised[1, 20:].any()
    assert not normalised[2].any()


def test_wenets_own_weights_load_into_it(golden) -> None:
    weights = golden("wenet/conformer.weights")
    feats = torch.from_numpy(golden("wenet/conformer.vectors")["feats"])
    cmvn = GlobalCmvn.unset(80)
    assert cmvn(feats).equal(feats)
    cmvn.load_state_dict({name: torch.from_numpy(weights[f"encoder.global_cmvn.{name}"]) for name in ("mean", "istd")})
    expected = (feats.numpy() - weights["encoder.global_cmvn.mean"]) * weights["encoder.global_cmvn.istd"]
    np.testing.assert_array_equal(cmvn(feats).numpy(), expected)


@pytest.mark.parametrize("use_variance", [True, False])
def test_each_utterance_has_mean_0_over_its_own_frames(features, use_variance: bool) -> None:
    batch, lengths = features
    normalised = UtteranceCmvn(use_variance=use_variance)(batch, lengths)
    for row, own in zip(rows(normalised, lengths)[:2], rows(batch, lengths), strict=False):
        np.testing.assert_allclose(row.mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(row.std(axis=0), 1 if use_variance else own.std(axis=0), rtol=1e-5)
    assert not normalised[1, 20:].any()
    assert normalised.isfinite().all()


def test_a_single_frame_and_a_constant_feature_become_zero() -> None:
    normalise = UtteranceCmvn()
    assert not normalise(torch.full((1, 1, 3), 5.3), Lengths(torch.tensor([1]))).any()
    assert normalise(torch.full((1, 9, 3), 5.3), Lengths(torch.tensor([9]))).abs().max() < 1e-3


def test_half_precision_leaves_the_statistics_alone(features) -> None:
    batch, lengths = features
    cmvn = GlobalCmvn.of(statistics_of(batch, lengths))
    expected = cmvn(batch, lengths)
    with torch.autocast("cpu", torch.bfloat16):
        assert cmvn(batch, lengths).equal(expected)
    assert cmvn.to(torch.bfloat16)(batch, lengths).equal(expected)
    assert cmvn.mean.dtype == torch.float32
