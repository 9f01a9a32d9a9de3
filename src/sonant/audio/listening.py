"""The sound of a recording as it comes, block by block: an hour needs no more memory than a minute.

for block in waveform_blocks("meeting.flac", sample_rate=16000):    # (N,) float32 each
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sonant.audio.recording import Recording, open_recording
from sonant.audio.resample import Resampler
from sonant.audio.waveform import one_channel, sample_at
from sonant.base.errors import AudioError

_BLOCK = 1 << 17  # samples: some seconds
_FORGIVEN_SECONDS = 0.1  # encoders promise a little more than they write


def waveform_blocks(
    audio: str,
    *,
    start: float = 0.0,
    seconds: float | None = None,
    channel: int | None = None,
    sample_rate: int | None = None,
    native_rate: int | None = None,
) -> Iterator[np.ndarray]:
    """What `read_waveform` gives, in blocks; refuses what it would pass over: a file that was cut, sound that is no
    numbers."""
    with open_recording(audio, sample_rate=native_rate) as recording:
        rate = recording.info.sample_rate
        first = sample_at(start, rate)
        end = None if seconds is None else first + sample_at(seconds, rate)
        resampler = Resampler(rate, sample_rate or rate)
        position = first
        for block in _stretch(recording, first, end):
            if not np.isfinite(block).all():
                problem = f"its sound is no numbers (NaN or infinite) {position / rate:.2f} s from its beginning on."
                raise AudioError(audio, problem, "Convert it again from where it came.")
            position += len(block)
            yield resampler.push(one_channel(block, channel, audio))
        _check_whole(recording, position, end)
        yield resampler.finish()


def _stretch(recording: Recording, first: int, end: int | None) -> Iterator[np.ndarray]:
    position = first
    for block in recording.blocks(max(_BLOCK // recording.info.num_channels, 1), first):
        yield block if end is None else block[: end - position]
        position += len(block)
        if end is not None and position >= end:
            return


def _check_whole(recording: Recording, position: int, end: int | None) -> None:
    """A recording that ends before its header says so was cut on its way here."""
    promised, rate = recording.info.num_samples or 0, recording.info.sample_rate
    wanted = promised if end is None else min(end, promised)
    if position + _FORGIVEN_SECONDS * rate < wanted:
        found = f"its header promises {promised / rate:.2f} s, {position / rate:.2f} s are there."
        raise AudioError(recording.where, f"it is cut short: {found}", "Copy the file again.")
