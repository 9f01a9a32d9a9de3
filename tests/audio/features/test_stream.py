from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.features.fbank import FbankConfig
from sonant.audio.features.front_end import FrontEnd, FrontEndConfig, build_front_end
from sonant.audio.features.log_mel import U2_LIGHTNING, WHISPER, LogMelConfig
from sonant.audio.features.waveform import WaveformConfig
from sonant.base.errors import UsageError
from sonant.base.lengths import Lengths

CONFIGS: dict[str, FrontEndConfig] = {
    "fbank": FbankConfig(),
    "fbank mirrored": FbankConfig(snip_edges=False, use_energy=True),
    "fbank of neighbours": FbankConfig(snip_edges=False, frame_length_ms=10.0),
    "log-mel": LogMelConfig(dynamic_range=None),
    "log-mel with few frames": LogMelConfig(dynamic_range=None, frame_shift_ms=20.0),
    "torchaudio": LogMelConfig(dynamic_range=None, drops_last_frame=False),
    "torchaudio with few frames": LogMelConfig(dynamic_range=None, drops_last_frame=False, frame_shift_ms=20.0),
    "uncentred": LogMelConfig(dynamic_range=None, is_centred=False, drops_last_frame=False),
    "waveform": WaveformConfig(normalize=False),
}
FRONT_ENDS = {name: build_front_end(config).eval() for name, config in CONFIGS.items()}
NOISE = (0.1 * np.random.default_rng(0).standard_normal(50000)).astype(np.float32)


def whole(front_end: FrontEnd, samples: np.ndarray) -> torch.Tensor:
    return front_end(torch.from_numpy(samples)[None], Lengths(torch.tensor([len(samples)])))[0][0]


def streamed(front_end: FrontEnd, pieces: list[np.ndarray]) -> torch.Tensor:
    stream = front_end.stream()
    return torch.cat([*(stream.push(piece) for piece in pieces), stream.finish()])


@pytest.mark.parametrize("name", CONFIGS)
@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 4000), max_size=12), num_samples=st.integers(0, 4000))
def test_any_chopping_gives_the_frames_of_the_whole(name: str, cuts: list[int], num_samples: int) -> None:
    samples = NOISE[:num_samples]
    pieces = np.split(samples, sorted(min(cut, num_samples) for cut in cuts))
    torch.testing.assert_close(streamed(FRONT_ENDS[name], pieces), whole(FRONT_ENDS[name], samples), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("num_samples", [0, 1, 80, 200, 201, 399, 400, 401, 640, 1700])
def test_one_sample_at_a_time_gives_the_frames_of_the_whole(name: str, num_samples: int) -> None:
    samples = NOISE[:num_samples]
    pieces = np.split(samples, num_samples) if num_samples else []
    torch.testing.assert_close(streamed(FRONT_ENDS[name], pieces), whole(FRONT_ENDS[name], samples), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", CONFIGS)
def test_pieces_of_37_give_the_frames_of_the_whole_and_the_past_is_forgotten(name: str) -> None:
    stream = FRONT_ENDS[name].stream()
    features = [stream.push(torch.from_numpy(piece)) for piece in np.split(NOISE, range(37, len(NOISE), 37))]
    assert len(stream._frames._held) < 1000
    torch.testing.assert_close(
        torch.cat([*features, stream.finish()]), whole(FRONT_ENDS[name], NOISE), atol=1e-5, rtol=0
    )


def test_a_frame_comes_as_soon_as_its_last_sample_is_there() -> None:
    stream = FRONT_ENDS["fbank"].stream()
    assert [len(stream.push(NOISE[:count])) for count in (399, 1, 159, 1)] == [0, 1, 0, 1]


def test_what_is_to_come_never_changes_a_frame() -> None:
    for front_end in FRONT_ENDS.values():
        first, second = front_end.stream(), front_end.stream()
        early = first.push(NOISE[:3000])
        assert torch.cat([second.push(NOISE[:3000]), second.push(-NOISE[3000:6000])])[: len(early)].equal(early)


@pytest.mark.parametrize(
    ("config", "setting"),
    [
        (WaveformConfig(), "normalize"),
        (U2_LIGHTNING, "normalize_waveform"),
        (LogMelConfig(), "dynamic_range"),
        (WHISPER, "pad_to_seconds"),
    ],
)
def test_what_needs_the_whole_utterance_says_so_instead_of_streaming(config: FrontEndConfig, setting: str) -> None:
    front_end = build_front_end(config)
    with pytest.raises(UsageError, match=f"'{setting}' needs each utterance to its end"):
        front_end.stream()
    with pytest.raises(UsageError, match="cut the audio into segments"):
        front_end.step(torch.zeros(1, 240), torch.zeros(1, 160))


@pytest.mark.parametrize("name", ["fbank", "uncentred", "waveform"])
def test_steps_that_carry_their_past_give_the_frames_of_the_whole(name: str) -> None:
    front_end = FRONT_ENDS[name]
    samples = torch.from_numpy(NOISE).view(2, -1)
    shift, start = front_end.samples_per_frame, front_end.framing.past_samples
    past, features = samples[:, :start], []
    for num_frames in (1, 4, 16):
        frames, past = front_end.step(past, samples[:, start : start + num_frames * shift])
        start += num_frames * shift
        features.append(frames)
    expected, _ = front_end(samples[:, :start], Lengths(torch.full((2,), start)))
    torch.testing.assert_close(torch.cat(features, dim=1), expected, atol=1e-5, rtol=0)
