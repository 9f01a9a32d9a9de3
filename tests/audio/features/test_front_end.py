from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from sonant.audio.features.fbank import BEATS, FbankConfig
from sonant.audio.features.front_end import FrontEnd, FrontEndConfig, build_front_end
from sonant.audio.features.log_mel import U2_LIGHTNING, WHISPER, LogMelConfig
from sonant.audio.features.waveform import WaveformConfig
from sonant.base.config import from_dict, to_dict
from sonant.base.errors import ConfigError
from sonant.base.lengths import Lengths

CONFIGS: dict[str, FrontEndConfig] = {
    "fbank": FbankConfig(),
    "fbank mirrored": FbankConfig(snip_edges=False, use_energy=True, frame_shift_ms=12.5),
    "fbank of neighbours": FbankConfig(snip_edges=False, frame_length_ms=10.0),
    "beats": BEATS,
    "log-mel": LogMelConfig(),
    "log-mel uncentred": LogMelConfig(is_centred=False, drops_last_frame=False),
    "whisper": WHISPER,
    "u2 lightning": U2_LIGHTNING,
    "waveform": WaveformConfig(),
    "raw waveform": WaveformConfig(normalize=False),
}
SHORT = [0, 1, 2, 79, 80, 199, 200, 201, 399, 400, 401, 560]


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def front_end(request: pytest.FixtureRequest) -> FrontEnd:
    return build_front_end(request.param).eval()


def sounds(*counts: int) -> tuple[torch.Tensor, Lengths]:
    """Rows of noise whose padding is not a number: whoever looks at it is found out."""
    waveforms = torch.full((len(counts), max(counts)), torch.nan)
    for row, count in zip(waveforms, counts, strict=True):
        row[:count] = 0.1 * torch.from_numpy(np.random.default_rng(count).standard_normal(count))
    return waveforms, Lengths(torch.tensor(counts))


def alone(front_end: FrontEnd, waveform: torch.Tensor) -> torch.Tensor:
    return front_end(waveform[None], Lengths(torch.tensor([len(waveform)])))[0][0]


def test_a_batch_gives_what_each_utterance_gives_alone(front_end: FrontEnd) -> None:
    waveforms, lengths = sounds(7000, 5123, *SHORT)
    features, frames = front_end(waveforms, lengths)
    for row, waveform, count, num_frames in zip(features, waveforms, lengths.values, frames.values, strict=True):
        expected = alone(front_end, waveform[:count])
        assert expected.shape == (num_frames, front_end.width)
        torch.testing.assert_close(row[:num_frames], expected, atol=1e-5, rtol=0)


def test_padded_frames_are_zero_and_more_padding_changes_nothing(front_end: FrontEnd) -> None:
    waveforms, lengths = sounds(4000, 2500, 0)
    features, frames = front_end(waveforms, lengths)
    assert not features.masked_select(~frames.mask(features.shape[1]).unsqueeze(2)).any()
    wider, same = front_end(torch.nn.functional.pad(waveforms, (0, 3333), value=torch.nan), lengths)
    assert same.values.tolist() == frames.values.tolist()
    torch.testing.assert_close(wider[:, : features.shape[1]], features, atol=1e-5, rtol=0)
    assert not wider[:, features.shape[1] :].any()


def test_num_frames_is_one_arithmetic_for_numbers_arrays_and_tensors(front_end: FrontEnd) -> None:
    counts = [*SHORT, 16000, 480000, 500000]
    numbers = [front_end.num_frames(count) for count in counts]
    assert front_end.num_frames(np.array(counts)).tolist() == numbers
    assert front_end.num_frames(torch.tensor(counts)).tolist() == numbers
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("config", "num_frames"),
    [
        (FbankConfig(), {0: 0, 399: 0, 400: 1, 559: 1, 560: 2, 16000: 98}),
        (FbankConfig(snip_edges=False), {0: 0, 79: 0, 80: 1, 239: 1, 240: 2, 16000: 100}),
        (LogMelConfig(), {0: 0, 200: 0, 201: 1, 399: 2, 400: 2, 16000: 100}),
        (U2_LIGHTNING, {0: 0, 200: 0, 201: 2, 399: 3, 400: 3, 16000: 101}),
        (WHISPER, {0: 3000, 480000: 3000, 480160: 3001}),
        (WaveformConfig(), {0: 0, 1: 1, 113600: 113600}),
    ],
)
def test_short_and_long_recordings_have_as_many_frames_as_said(config: FrontEndConfig, num_frames: dict) -> None:
    assert {count: build_front_end(config).num_frames(count) for count in num_frames} == num_frames


def test_digital_silence_is_a_number(front_end: FrontEnd) -> None:
    features, _ = front_end(torch.zeros(2, 1000), Lengths(torch.tensor([1000, 0])))
    assert features.isfinite().all()


def test_an_empty_batch_and_an_empty_recording_give_no_frames() -> None:
    front_end = build_front_end(FbankConfig())
    assert front_end(torch.zeros(0, 1000), Lengths(torch.zeros(0, dtype=torch.int64)))[0].shape == (0, 4, 80)
    assert front_end(torch.zeros(2, 0), Lengths(torch.zeros(2, dtype=torch.int64)))[0].shape == (2, 0, 80)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_around_it_changes_nothing(front_end: FrontEnd, dtype: torch.dtype) -> None:
    waveforms, lengths = sounds(3000, 1200)
    expected, _ = front_end(waveforms, lengths)
    with torch.autocast("cpu", dtype):
        features, _ = front_end(waveforms, lengths)
    assert features.dtype == torch.float32
    assert features.equal(expected)
    assert torch.nn.Sequential(front_end).to(dtype)[0](waveforms, lengths)[0].equal(expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_what_a_cpu_gives_whatever_precision_is_switched_on(front_end: FrontEnd) -> None:
    waveforms, lengths = sounds(30000, 1200)
    expected, frames = front_end(waveforms, lengths)
    was = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cuda", torch.bfloat16):
            features, found = front_end.cuda()(waveforms.cuda(), lengths.to("cuda"))
    finally:
        torch.set_float32_matmul_precision(was)
    torch.testing.assert_close(features.cpu(), expected, atol=1e-5, rtol=0)
    assert found.values.cpu().equal(frames.values)


def test_long_recordings_are_analysed_block_by_block_to_the_same_features() -> None:
    front_end = build_front_end(FbankConfig())
    waveforms, lengths = sounds(3 * 1024 * 160)
    first, last = front_end(waveforms, lengths)[0][0].split([1500, 1570])
    torch.testing.assert_close(alone(front_end, waveforms[0, : 1499 * 160 + 400]), first, atol=1e-5, rtol=0)
    torch.testing.assert_close(alone(front_end, waveforms[0, 1500 * 160 :]), last, atol=1e-5, rtol=0)


def test_it_adds_nothing_to_a_checkpoint_and_nothing_to_train(front_end: FrontEnd) -> None:
    assert not front_end.state_dict()
    assert not list(front_end.parameters())


def test_gradients_reach_the_samples(front_end: FrontEnd) -> None:
    waveforms, lengths = sounds(1000, 1000)
    features, _ = front_end(waveforms.requires_grad_(), lengths)
    features.square().sum().backward()
    assert waveforms.grad is not None
    assert waveforms.grad.isfinite().all()
    assert waveforms.grad.any()


def test_a_frame_knows_its_milliseconds() -> None:
    front_end = build_front_end(FbankConfig(sample_rate=8000, frame_shift_ms=12.5))
    assert (front_end.samples_per_frame, front_end.frame_ms, front_end.width) == (100, 12.5, 80)
    assert build_front_end(WaveformConfig()).frame_ms == 1 / 16
    assert build_front_end(FbankConfig(use_energy=True)).width == 81


def test_dither_is_heard_in_training_only() -> None:
    waveforms, lengths = sounds(2000)
    quiet, dithered = build_front_end(FbankConfig()), build_front_end(FbankConfig(dither=1.0))
    expected, _ = quiet(waveforms, lengths)
    assert dithered.eval()(waveforms, lengths)[0].equal(expected)
    assert not dithered.train()(waveforms, lengths)[0].equal(expected)


def test_dither_is_counted_in_steps_of_16_bits() -> None:
    torch.manual_seed(0)
    front_end = build_front_end(FbankConfig(dither=2.0, use_energy=True, remove_dc_offset=False)).train()
    features, _ = front_end(torch.zeros(1, 16000), Lengths(torch.tensor([16000])))
    assert features[0, :, 0].exp().mean().item() / 400 == pytest.approx(2.0**2, rel=0.05)


@dataclass(frozen=True, kw_only=True)
class Model:
    front_end: FrontEndConfig


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_config_survives_its_file(config: FrontEndConfig) -> None:
    assert from_dict(Model, to_dict(Model(front_end=config)), "bundle.json").front_end == config


def test_an_unknown_option_is_refused_with_the_right_one() -> None:
    with pytest.raises(ConfigError, match="num_mels"):
        from_dict(Model, {"front_end": {"kind": "log_mel", "num_mel": 80}}, "model.yaml")
