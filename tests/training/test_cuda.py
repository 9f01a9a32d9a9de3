"""What holds on a processor holds on a GPU: precisions, exact resume, and memory that runs out before the training."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from small_training import build, configured, run_small

from sonant.training.scan import OutOfMemoryError
from sonant.training.start import train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is at hand")

CONSTANT = ["trainer.schedule.kind=constant", "trainer.schedule.warmup=0", "trainer.deterministic=true"]


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 0.02), ("bf16", 0.1), ("fp16", 0.1)])
def test_every_precision_learns_what_a_processor_learns(tmp_path, monkeypatch, precision, tolerance):
    result = run_small(tmp_path / "gpu", "trainer.limits.max_steps=60", f"trainer.precision={precision}")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    reference = run_small(tmp_path / "cpu", "trainer.limits.max_steps=60")
    assert result.metrics["loss"] == pytest.approx(reference.metrics["loss"], rel=tolerance)


@pytest.mark.parametrize("extra", [[], ["trainer.precision=bf16", "trainer.ema=0.9"], ["trainer.precision=fp16"]])
def test_a_run_in_two_parts_is_one_run_to_the_bit(tmp_path, extra):
    words = [*CONSTANT, *extra, "dropout=0.2", "trainer.batches_per_step=2", "workers=2"]
    run_small(tmp_path / "whole", *words)
    run_small(tmp_path / "parts", *words, "trainer.limits.max_steps=16")
    run_small(tmp_path / "parts", *words)
    one, other = (load_file(tmp_path / name / "states/step-000024/weights.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_with_a_scan_equals_one_without(tmp_path):
    found = []
    for is_scanned in ("true", "false"):
        config = configured(*CONSTANT, "dropout=0.2", f"trainer.guard.scan={is_scanned}")
        train(str(tmp_path / is_scanned), config, build(config), is_silent=True)
        found.append(load_file(tmp_path / is_scanned / "states/step-000024/weights.safetensors"))
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_a_batch_that_is_too_large_is_named_before_the_first_step(tmp_path):
    config = configured("trainer.guard.scan=true", "width=1024", "ballast=4000000", "batch_size=40")
    with pytest.raises(OutOfMemoryError, match=r"a batch of 40 .*does not fit on the device"):
        train(str(tmp_path / "run"), config, build(config), is_silent=True)
    assert not list((tmp_path / "run/states").iterdir())


def test_compiled_learns_the_same(tmp_path):
    plain = run_small(tmp_path / "plain", "trainer.limits.max_steps=30")
    compiled = run_small(tmp_path / "compiled", "trainer.limits.max_steps=30", "trainer.compile=true")
    assert compiled.metrics["loss"] == pytest.approx(plain.metrics["loss"], rel=0.02)
