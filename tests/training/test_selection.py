"""Which weights are kept, and that they are the ones whose figures stand beside them."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from small_training import SequenceSource, SmallModel, SmallObjective, collated, configured, run_small

from sonant.base.errors import SonantError
from sonant.checkpoints.bundle import open_bundle
from sonant.checkpoints.metrics_log import read_log
from sonant.training.averaging import Averaging
from sonant.training.config import AverageConfig, BestConfig
from sonant.training.ema import MovingAverage


def loss_of_bundle(place) -> float:
    """Validation as the small training makes it, of the weights in the bundle."""
    source = SequenceSource(configured())
    batch = collated([source.utterance(row) for row in range(0, 40, 3)])
    model, objective = SmallModel(8, 0.0), SmallObjective()
    model.load_state_dict(load_file(place / "bundle/model.safetensors"))
    with torch.no_grad():
        return float(objective(model.eval(), batch, 0).divided_by(objective.counts(batch)))


@pytest.mark.parametrize("extra", [[], ["trainer.ema=0.8"], ["trainer.average.count=3"], ["trainer.precision=bf16"]])
def test_the_bundle_is_worth_what_its_figure_says(tmp_path, extra):
    result = run_small(tmp_path, *extra, "trainer.rhythm.validate=3", "trainer.optimizer.rate=0.05")
    figure = open_bundle(str(tmp_path / "bundle")).description.metrics["loss"]
    assert figure == result.metrics["loss"] == loss_of_bundle(tmp_path)
    assert json.loads((tmp_path / "all_results.json").read_text())["eval_loss"] == figure


def test_the_best_validation_is_kept_and_not_the_last(tmp_path):
    words = ["trainer.optimizer.rate=1.5", "trainer.schedule.kind=constant", "trainer.rhythm.validate=1"]
    result = run_small(tmp_path, *words)
    losses = {
        line["step"]: line["loss"] for line in read_log(f"{tmp_path}/metrics.jsonl") if line["kind"] == "validation"
    }
    assert result.best_step == min(losses, key=losses.get) < 24
    assert loss_of_bundle(tmp_path) == losses[result.best_step]


def test_validations_without_a_better_figure_end_the_run(tmp_path):
    words = ["trainer.optimizer.rate=0.3", "trainer.schedule.kind=constant", "trainer.limits.patience=3"]
    result = run_small(tmp_path, *words, "trainer.rhythm.validate=1", "trainer.limits.max_steps=500")
    assert result.is_finished
    assert result.step == result.best_step + 3
    assert "3 validations in a row were no better" in result.reason


def test_a_run_without_validations_still_leaves_its_bundle(tmp_path):
    run_small(tmp_path, "trainer.rhythm.validate=0")
    assert (tmp_path / "bundle/model.safetensors").exists()


def test_a_moving_average_is_the_sum_that_its_formula_says():
    torch.manual_seed(0)
    model = SmallModel(4, 0.0)
    average, expected = MovingAverage(model, 0.7), model.enter.weight.detach().clone()
    for n in range(1, 6):
        with torch.no_grad():
            model.enter.weight.add_(torch.randn_like(model.enter.weight))
        average.update()
        decay = min(0.7, (1 + n) / (10 + n))
        expected = decay * expected + (1 - decay) * model.enter.weight.detach()
    live = model.enter.weight.detach().clone()
    with average.in_place():
        torch.testing.assert_close(model.enter.weight.detach(), expected)
    assert torch.equal(model.enter.weight, live)


@pytest.mark.parametrize(("of", "expected"), [("best", [3, 4, 6]), ("last", [5, 6, 7])])
def test_the_mean_is_of_the_best_or_of_the_last(tmp_path, of, expected):
    averaging = Averaging(str(tmp_path), AverageConfig(count=3, of=of), BestConfig())
    values = {1: 9.0, 2: 5.0, 3: 1.0, 4: 2.0, 5: 8.0, 6: 3.0, 7: 7.0}
    for step, value in values.items():
        if averaging.wants(value):
            averaging.take(step, value, {"w": torch.full((2,), float(step)), "n": torch.tensor(step)})
    assert sorted(step for step, _ in averaging.kept) == expected
    mean = averaging.mean()
    assert mean["w"].tolist() == pytest.approx([sum(expected) / 3] * 2)
    assert mean["n"].item() == expected[-1]


@pytest.mark.slow
def test_a_mean_that_is_better_than_the_best_becomes_the_bundle(tmp_path):
    words = ["trainer.optimizer.rate=0.08", "trainer.schedule.kind=constant", "trainer.limits.max_steps=120"]
    run_small(tmp_path, *words, "trainer.average.count=5", "trainer.average.of=last")
    lines = read_log(f"{tmp_path}/metrics.jsonl")
    [average] = [line["loss"] for line in lines if line["kind"] == "average"]
    best = min(line["loss"] for line in lines if line["kind"] == "validation")
    assert loss_of_bundle(tmp_path) == min(average, best)


def test_states_that_are_not_kept_are_gone(tmp_path):
    run_small(tmp_path, "trainer.keep.last=1", "trainer.keep.best=false", "trainer.rhythm.save=2")
    assert [path.name for path in (tmp_path / "states").iterdir()] == ["step-000024"]


def test_trackers_are_written_where_they_are_asked_for(tmp_path):
    run_small(tmp_path, "trainer.trackers=[tensorboard]")
    assert list((tmp_path / "tensorboard").glob("events*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_other_trackers_need_no_network(tmp_path, monkeypatch, name):
    for variable in ("WANDB_DIR", "TRACKIO_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "trackers"))
    (tmp_path / "trackers").mkdir()
    result = run_small(tmp_path / "run", f"trainer.trackers=[{name}]")
    assert result.is_finished
    written = [path for folder in ("run", "trackers") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert any(path.suffix in (".wandb", ".db") for path in written), written


def test_a_tracker_that_is_not_known_is_told_with_those_that_are(tmp_path):
    with pytest.raises(SonantError, match="tensorboard"):
        run_small(tmp_path, "trainer.trackers=[tensorbord]")
