"""Which samples each frame sees, in a whole recording and in one that is still coming in.

A frame begins every `shift` samples and sees `window` of them. No torch: a server that runs an exported
graph frames its audio with this file alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sonant.base.lengths import Count, frames_after

Edges = Literal["cut", "mirrored", "centred"]


@dataclass(frozen=True, kw_only=True)
class Framing:
    """Windows over samples, and what they see where there is no recording.

    cut       every frame lies inside the recording (Kaldi's snip_edges)
    mirrored  one frame per shift, rounded; outside, the recording runs backwards, its last sample twice
    centred   frame t is centred on sample t·shift; outside, the recording runs backwards, its last sample once
    """

    window: int  # samples
    shift: int  # samples
    edges: Edges = "cut"
    drops_last_frame: bool = False  # of centred frames, as Whisper does

    @property
    def before(self) -> int:
        """Samples that the first frame sees before the recording begins."""
        return {"cut": 0, "mirrored": self.window // 2 - self.shift // 2, "centred": self.window // 2}[self.edges]

    @property
    def after(self) -> int:
        """The most samples that a last frame sees after the recording has ended."""
        return max(0, self._outside - self.before)

    @property
    def fewest_samples(self) -> int:
        """A shorter recording has no frame."""
        return {"cut": self.window, "mirrored": 1, "centred": self.window // 2 + 1}[self.edges]

    @property
    def past_samples(self) -> int:
        """Samples that a frame shares with the one before it: the state of a live stream."""
        return self.window - self.shift

    @property
    def _outside(self) -> int:
        """What the edges add to a recording, so that its frames are those of windows that all lie inside."""
        mirrored = self.window + self.shift // 2 - self.shift
        centred = self.window // 2 * 2 - self.shift * self.drops_last_frame
        return {"cut": 0, "mirrored": mirrored, "centred": centred}[self.edges]

    def num_frames(self, num_samples: Count) -> Count:
        """The frames of so many samples: a number, an array or a tensor of them."""
        num_frames: Count = frames_after(num_samples + self._outside, (self.window,), (self.shift,))
        return num_frames * (num_samples >= self.fewest_samples)

    def num_frames_inside(self, num_samples: int) -> int:
        """The frames that stand whatever is still to come."""
        if num_samples <= self.before:  # the edge before the recording is not known yet
            return 0
        num_frames: int = frames_after(num_samples + min(self.before, self._outside), (self.window,), (self.shift,))
        return num_frames

    def samples_of(self, num_frames: int) -> int:
        """The samples that so many neighbouring frames see together."""
        return (num_frames - 1) * self.shift + self.window if num_frames > 0 else 0

    def seen(self, positions: Any, num_samples: Any) -> Any:
        """The sample that stands at each position, also before the first (negative) and after the last."""
        if self.edges == "cut":
            return positions
        last = 2 * num_samples - (1 if self.edges == "mirrored" else 2)
        folded = positions % (last + (self.edges == "mirrored"))
        return folded - (2 * folded - last).clip(0)


class LiveFrames:
    """Gives the samples of every frame as soon as they have come in, edges included.

    What `push` and `finish` return is a stretch of samples whose windows, all inside it, are the next frames:
    an array of `samples_of(k)` samples, empty where there is no new frame.
    """

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._held = np.zeros(0, np.float32)  # the end of what came in, from sample `_first` on
        self._first = self._num_samples = self._num_frames = 0

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Takes the next samples (N,), however many."""
        self._held = np.concatenate([self._held, samples.astype(np.float32, copy=False)])
        self._num_samples += len(samples)
        return self._up_to(self._framing.num_frames_inside(self._num_samples))

    def finish(self) -> np.ndarray:
        """The frames that reach beyond the end; nothing may be pushed after it."""
        return self._up_to(self._framing.num_frames(self._num_samples))

    def _up_to(self, num_frames: int) -> np.ndarray:
        if num_frames <= self._num_frames:
            return self._held[:0]
        start = self._num_frames * self._framing.shift - self._framing.before
        positions = start + np.arange(self._framing.samples_of(num_frames - self._num_frames))
        stretch: np.ndarray = self._held[self._framing.seen(positions, self._num_samples) - self._first]
        self._num_frames = num_frames
        self._forget()
        return stretch

    def _forget(self) -> None:
        """Keeps what the next frame may see: its own samples, and one before them when it is the last, mirrored."""
        next_frame = self._num_frames * self._framing.shift - self._framing.before
        keep = max(self._first, next_frame - 1)
        self._held, self._first = self._held[keep - self._first :], keep
