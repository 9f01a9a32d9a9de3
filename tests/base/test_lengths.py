from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.lengths import Lengths, frames_after, frames_needed_by_ctc, samples_before

WAV2VEC2 = ((10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2))
STACKS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), min_size=1, max_size=4)


def split(stack: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [kernel for kernel, _ in stack], [stride for _, stride in stack]


@pytest.mark.parametrize(("num_samples", "num_frames"), [(113600, 354), (400, 1), (399, 0), (0, 0), (719, 1), (720, 2)])
def test_the_frames_of_wav2vec2(num_samples, num_frames):
    assert frames_after(num_samples, *WAV2VEC2) == num_frames


@settings(deadline=None)
@given(stack=STACKS, num_samples=st.integers(0, 400))
def test_frames_are_those_that_convolutions_give(stack, num_samples):
    kernels, strides = split(stack)
    sound = torch.zeros(1, 1, num_samples)
    for kernel, stride in stack:
        short = sound.shape[2] < kernel  # torch refuses what gives no frame
        sound = sound[..., :0] if short else torch.nn.functional.conv1d(sound, torch.ones(1, 1, kernel), stride=stride)
    assert frames_after(num_samples, kernels, strides) == sound.shape[2]


@given(stack=STACKS, num_samples=st.lists(st.integers(0, 10**6), min_size=1, max_size=9))
def test_numbers_arrays_and_tensors_obey_one_arithmetic(stack, num_samples):
    kernels, strides = split(stack)
    expected = [frames_after(number, kernels, strides) for number in num_samples]
    assert frames_after(np.array(num_samples), kernels, strides).tolist() == expected
    assert frames_after(torch.tensor(num_samples), kernels, strides).tolist() == expected
    assert Lengths(torch.tensor(num_samples)).after(kernels, strides).values.tolist() == expected


@given(stack=STACKS, num_frames=st.integers(1, 10**5))
def test_the_fewest_samples_give_the_frames_and_one_less_does_not(stack, num_frames):
    kernels, strides = split(stack)
    fewest = samples_before(num_frames, kernels, strides)
    assert frames_after(fewest, kernels, strides) == num_frames
    assert frames_after(fewest - 1, kernels, strides) == num_frames - 1


@pytest.mark.parametrize(("labels", "frames"), [([], 0), ([1], 1), ([1, 1, 2], 4), ([1, 2, 1], 3), ([3, 3, 3], 5)])
def test_a_repeated_label_needs_a_frame_more(labels, frames):
    assert frames_needed_by_ctc(labels) == frames


@settings(deadline=None)
@given(labels=st.lists(st.integers(1, 3), min_size=1, max_size=8), spare=st.integers(-3, 2))
def test_ctc_has_an_alignment_exactly_when_there_are_frames_enough(labels, spare):
    num_frames = max(frames_needed_by_ctc(labels) + spare, 1)
    scores = torch.zeros(num_frames, 1, 4).log_softmax(2)
    targets, sizes = torch.tensor([labels]), (torch.tensor([num_frames]), torch.tensor([len(labels)]))
    loss = torch.nn.functional.ctc_loss(scores, targets, *sizes, reduction="sum")
    assert bool(loss.isfinite()) == (num_frames >= frames_needed_by_ctc(labels))


@given(values=st.lists(st.integers(0, 20), max_size=6), more=st.integers(0, 5))
def test_the_mask_is_true_where_a_row_is_real(values, more):
    padded = max(values, default=0) + more
    expected = [[place < value for place in range(padded)] for value in values]
    for lengths in (Lengths(np.array(values, np.int64)), Lengths(torch.tensor(values, dtype=torch.int64))):
        mask = lengths.mask(padded)
        assert mask.shape == (len(values), padded)
        assert mask.tolist() == expected
        assert lengths.mask().shape == (len(values), lengths.longest)
        assert (len(lengths), lengths.longest, lengths.total) == (len(values), max(values, default=0), sum(values))


def test_padding_is_the_share_that_is_not_real():
    assert Lengths(np.array([3, 1])).padding_share == pytest.approx(1 / 3)
    assert Lengths(torch.tensor([2, 2])).padding_share == 0
    assert Lengths(np.array([], np.int64)).padding_share == 0
    assert Lengths(np.array([0, 0])).padding_share == 0


def test_lengths_move_with_what_they_describe():
    assert Lengths(torch.tensor([1, 2])).to("meta").values.device.type == "meta"
