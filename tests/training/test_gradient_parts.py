"""The log tells where in a model its gradients are."""

from __future__ import annotations

import math

import pytest
import torch
from small_training import run_small
from torch import nn

from sonant.checkpoints.metrics_log import read_log
from sonant.training.gradient_parts import by_part


def parts(names: list[str], num_words: int) -> dict[str, int]:
    named = {nn.Parameter(torch.zeros(1)): name for name in names}
    return {part: len(parameters) for part, parameters in by_part(named, num_words).items()}


NAMES = ["encoder.transformer.layers.0.norm.weight", "encoder.transformer.layers.10.norm.weight", "encoder.mask"]


@pytest.mark.parametrize(
    ("names", "num_words", "expected"),
    [
        ([*NAMES, "head.bias"], 2, {"encoder.transformer": 2, "encoder": 1, "head": 1}),
        ([*NAMES, "head.bias"], 1, {"encoder": 3, "head": 1}),
        ([*NAMES, "head.bias"], 0, {}),
        (NAMES, 1, {"transformer": 2, "mask": 1}),  # what all begin with tells nothing
        (["layers.0.weight", "layers.1.weight", "out.weight"], 2, {"layers": 2, "out": 1}),
        (["weight", "bias"], 2, {"weight": 1, "bias": 1}),
    ],
)
def test_parameters_are_told_apart_by_the_first_words_of_their_names(names, num_words, expected):
    assert parts(names, num_words) == expected


def norms(place, *words) -> list[dict[str, float]]:
    run_small(place, "trainer.limits.max_steps=6", "trainer.rhythm.log=1", *words)
    lines = [line for line in read_log(f"{place}/metrics.jsonl") if line["kind"] == "train"]
    return [{name: value for name, value in line.items() if name.startswith("gradient_norm")} for line in lines]


@pytest.mark.parametrize("extra", [(), ("trainer.max_gradient_norm=0.001",), ("trainer.precision=bf16",)])
def test_the_norms_of_all_parts_make_the_whole_one_before_it_is_clipped(tmp_path, extra):
    for found in norms(tmp_path / "run", *extra):
        whole = found.pop("gradient_norm")
        assert set(found) == {f"gradient_norm/{part}" for part in ("enter", "layers", "remember", "norm", "leave")}
        assert math.sqrt(sum(norm**2 for norm in found.values())) == pytest.approx(whole, rel=1e-5)
        assert whole > 0.001


def test_they_are_told_in_the_last_step_before_a_line_and_cost_nothing_in_others(tmp_path):
    each = norms(tmp_path / "each")
    [third, sixth] = norms(tmp_path / "third", "trainer.rhythm.log=3")
    for told, last in ((third, each[2]), (sixth, each[5])):
        assert told["gradient_norm/layers"] == last["gradient_norm/layers"]
        assert told["gradient_norm"] != last["gradient_norm"]  # which is a mean over three steps
    assert set(norms(tmp_path / "off", "trainer.gradient_parts=0")[0]) == {"gradient_norm"}
    assert "gradient norm/layers" in (tmp_path / "each/report.html").read_text()
