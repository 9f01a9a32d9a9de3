from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.features.fbank import FbankConfig
from sonant.audio.features.framing import Framing, LiveFrames
from sonant.audio.features.front_end import FrontEnd, FrontEndConfig
from sonant.audio.features.log_mel import LogMelConfig
from sonant.base.lengths import Lengths


@st.composite
def configs(draw: st.DrawFn) -> FrontEndConfig:
    """At 1000 samples a second, a sample is a millisecond."""
    shift, overlap = draw(st.integers(1, 40)), draw(st.integers(0, 60))
    common = {
        "sample_rate": 1000,
        "num_mels": 1,
        "frame_length_ms": max(2, shift + overlap),
        "frame_shift_ms": shift,
    }
    if draw(st.booleans()):
        return FbankConfig(**common, snip_edges=draw(st.booleans()))
    return LogMelConfig(**common, drops_last_frame=draw(st.booleans()))


def windows_of(framing: Framing, num_samples: int) -> np.ndarray:
    """The windows over the samples 1, 2, 3…, by numpy's own padding."""
    num_frames = framing.num_frames(num_samples)
    if num_frames == 0:
        return np.zeros((0, framing.window))
    mode = {"cut": "constant", "mirrored": "symmetric", "centred": "reflect"}[framing.edges]
    seen = np.pad(np.arange(1.0, num_samples + 1), (framing.before, framing.after), mode=mode)  # type: ignore[call-overload]
    return np.lib.stride_tricks.sliding_window_view(seen, framing.window)[:: framing.shift][:num_frames]


@settings(max_examples=100, deadline=None)
@given(config=configs(), counts=st.lists(st.integers(0, 300), min_size=1, max_size=4))
def test_frames_see_the_recording_and_its_mirror_image(config: FrontEndConfig, counts: list[int]) -> None:
    front_end = FrontEnd(config, torch.nn.Identity())  # frames as they are
    waveforms = torch.arange(1.0, max(counts) + 1).repeat(len(counts), 1)
    frames, lengths = front_end(waveforms, Lengths(torch.tensor(counts)))
    for row, count, num_frames in zip(frames, counts, lengths.values.tolist(), strict=True):
        np.testing.assert_array_equal(row[:num_frames], windows_of(config.framing, count))


@settings(max_examples=200, deadline=None)
@given(config=configs(), num_samples=st.integers(0, 300), cuts=st.lists(st.integers(0, 300), max_size=8))
def test_live_frames_are_the_windows_of_the_recording(config: FrontEndConfig, num_samples: int, cuts: list) -> None:
    framing, samples = config.framing, np.arange(1.0, num_samples + 1)
    live = LiveFrames(framing)
    stretches = [*map(live.push, np.split(samples, sorted(min(cut, num_samples) for cut in cuts))), live.finish()]
    seen = [
        np.lib.stride_tricks.sliding_window_view(one, framing.window)[:: framing.shift] for one in stretches if len(one)
    ]
    expected = windows_of(framing, num_samples)
    np.testing.assert_array_equal(np.concatenate(seen) if seen else expected[:0], expected)


def test_a_mirrored_recording_begins_and_ends_with_its_last_samples_twice() -> None:
    live = LiveFrames(Framing(window=4, shift=2, edges="mirrored"))
    stretches = [live.push(np.array(piece)) for piece in ([1, 2], [3], [4, 5, 6])]
    assert [stretch.tolist() for stretch in stretches] == [[], [1, 1, 2, 3], [2, 3, 4, 5]]
    assert live.finish().tolist() == [4, 5, 6, 6]
