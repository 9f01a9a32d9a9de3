from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor
from torch.export import Dim

from sonant.audio.features.fbank import FbankConfig
from sonant.audio.features.framing import LiveFrames
from sonant.audio.features.front_end import FrontEnd, FrontEndConfig, build_front_end
from sonant.audio.features.log_mel import U2_LIGHTNING, WHISPER, LogMelConfig
from sonant.audio.features.waveform import WaveformConfig
from sonant.base.lengths import Lengths

pytestmark = pytest.mark.filterwarnings("ignore")  # the exporter's own, of packages that are not needed
CONFIGS: dict[str, FrontEndConfig] = {
    "fbank": FbankConfig(),
    "fbank mirrored": FbankConfig(snip_edges=False, use_energy=True),
    "log-mel": LogMelConfig(),
    "whisper": WHISPER,
    "u2 lightning": U2_LIGHTNING,
    "waveform": WaveformConfig(),
}
NOISE = (0.1 * np.random.default_rng(0).standard_normal(60000)).astype(np.float32)


class Whole(torch.nn.Module):
    """What a graph takes and gives: tensors only."""

    def __init__(self, front_end: FrontEnd) -> None:
        super().__init__()
        self.front_end = front_end

    def forward(self, waveforms: Tensor, num_samples: Tensor) -> tuple[Tensor, Tensor]:
        features, lengths = self.front_end(waveforms, Lengths(num_samples))
        return features, lengths.values


class Step(Whole):
    def forward(self, past: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
        return self.front_end.step(past, samples)


def session(model: Whole, examples: tuple[Tensor, ...], shapes: tuple, folder: Path) -> onnxruntime.InferenceSession:
    location = str(folder / "front_end.onnx")
    torch.onnx.export(model.eval(), examples, location, dynamo=True, dynamic_shapes=shapes, verbose=False)
    return onnxruntime.InferenceSession(location, providers=["CPUExecutionProvider"])


def run(graph: onnxruntime.InferenceSession, *inputs: np.ndarray) -> list[np.ndarray]:
    return graph.run(None, {one.name: value for one, value in zip(graph.get_inputs(), inputs, strict=True)})


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_a_graph_gives_the_features_of_any_batch(name: str, tmp_path: Path) -> None:
    model = Whole(build_front_end(CONFIGS[name]))
    utterances, most = Dim("utterances"), Dim("samples", min=800)
    examples = torch.from_numpy(NOISE[:32000].reshape(2, -1)), torch.tensor([16000, 399])
    graph = session(model, examples, ({0: utterances, 1: most}, {0: utterances}), tmp_path)
    for counts in ([5000], [20000, 399, 100], [1700, 560, 400, 0]):
        waveforms = NOISE[: len(counts) * max(counts)].reshape(len(counts), -1)
        features, num_frames = run(graph, waveforms, np.array(counts))
        expected, expected_frames = model(torch.from_numpy(waveforms), torch.tensor(counts))
        assert num_frames.tolist() == expected_frames.tolist()
        np.testing.assert_allclose(features, expected, atol=1e-4)


@pytest.mark.slow
def test_a_live_graph_gives_the_features_of_the_whole_recording(tmp_path: Path) -> None:
    front_end = build_front_end(FbankConfig(snip_edges=False))
    utterances, frames = Dim("utterances"), Dim("frames", min=1)
    examples = torch.zeros(1, 240), torch.zeros(1, 16 * 160)
    graph = session(Step(front_end), examples, ({0: utterances}, {0: utterances, 1: 160 * frames}), tmp_path)

    live, past, features = LiveFrames(front_end.framing), np.zeros((1, 0), np.float32), []
    pieces = [live.push(piece) for piece in np.split(NOISE[:8000], [100, 137, 2500, 2660, 7000])]
    for stretch in (piece for piece in [*pieces, live.finish()] if len(piece)):  # nothing here needs torch
        past, samples = stretch[None, :240], stretch[None, 240:]
        features.append(run(graph, past, samples)[0][0])
    expected, _ = front_end(torch.from_numpy(NOISE[None, :8000]), Lengths(torch.tensor([8000])))
    np.testing.assert_allclose(np.concatenate(features), expected[0], atol=1e-4)
