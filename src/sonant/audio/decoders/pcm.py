"""Uncompressed samples: read straight from where they lie, to the bit as libsndfile does, in a third of its time."""

from __future__ import annotations

from functools import cache

import numpy as np

from sonant.audio.decoders.decoder import RecordingInfo, single_precision
from sonant.audio.decoders.headers import Layout
from sonant.audio.streams import Bytes

_NAMES = {"i1": "pcm_s8", "u1": "pcm_u8", "i2": "pcm_16", "i3": "pcm_24", "i4": "pcm_32", "f4": "float", "f8": "double"}


class PcmDecoder:
    """The samples of a `Layout`."""

    def __init__(self, content: Bytes, layout: Layout, kind: str) -> None:
        self._content, self._layout = content, layout
        self._frame_bytes = layout.frame_bytes
        self._num_samples = layout.num_bytes // self._frame_bytes  # there really are
        self._position = 0
        promised = layout.promised_bytes
        self.info = RecordingInfo(
            sample_rate=layout.sample_rate,
            num_channels=layout.num_channels,
            num_samples=None if promised is None else promised // self._frame_bytes,
            encoding=f"{kind}/{_NAMES.get(layout.coding[1:], layout.coding)}",
        )

    def start_at(self, first: int) -> None:
        self._position = min(first, self._num_samples)

    def read(self, num_samples: int) -> np.ndarray:
        num_samples = min(num_samples, self._num_samples - self._position)
        raw = np.empty(num_samples * self._frame_bytes, np.uint8)
        count = self._content.read_into(self._layout.offset + self._position * self._frame_bytes, raw)
        count -= count % self._frame_bytes  # less than asked: the file has been shortened since it was opened
        self._position += count // self._frame_bytes
        return _to_float(raw[:count], self._layout.coding).reshape(-1, self._layout.num_channels)

    def check_end(self) -> None:
        pass

    def close(self) -> None:
        self._content.close()


def _to_float(raw: np.ndarray, coding: str) -> np.ndarray:
    """Bytes to float32, full scale 1."""
    if coding.endswith("law"):
        table = _mu_law() if coding == "ulaw" else _a_law()
        decoded: np.ndarray = table[raw]
        return decoded
    if coding.endswith("i3"):
        raw, coding = _widened(raw, coding[0]), coding[0] + "i4"
    values = raw.view(coding)
    if values.dtype.kind != "i":
        values = single_precision(values)
        return np.divide(values - 128, 128, dtype=np.float32) if coding[1] == "u" else values
    scale = np.float32(2.0 ** (1 - 8 * values.dtype.itemsize))
    scaled: np.ndarray = np.multiply(values, scale, dtype=np.float32, casting="unsafe")
    return scaled


def _widened(raw: np.ndarray, order: str) -> np.ndarray:
    """24 bits as the upper ones of 32."""
    wide = np.zeros((len(raw) // 3, 4), np.uint8)
    wide[:, slice(1, 4) if order == "<" else slice(0, 3)] = raw.reshape(-1, 3)
    return wide.reshape(-1)


@cache
def _mu_law() -> np.ndarray:
    """ITU-T G.711: the 256 values."""
    code = ~np.arange(256, dtype=np.uint8)
    exponent, mantissa = (code >> 4 & 7).astype(np.int32), (code & 15).astype(np.int32)
    magnitude = ((mantissa << 3) + 132 << exponent) - 132
    return np.where(code & 128, -magnitude, magnitude).astype(np.float32) / np.float32(32768)


@cache
def _a_law() -> np.ndarray:
    """ITU-T G.711: the 256 values."""
    code = np.arange(256, dtype=np.uint8) ^ np.uint8(0x55)
    exponent, mantissa = (code >> 4 & 7).astype(np.int32), (code & 15).astype(np.int32)
    magnitude = np.where(exponent > 0, (mantissa << 4) + 264 << np.maximum(exponent - 1, 0), (mantissa << 4) + 8)
    return np.where(code & 128, magnitude, -magnitude).astype(np.float32) / np.float32(32768)
