"""What goes wrong is noticed, told with its utterances, and ends or mends the run."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from small_training import run_small

from sonant.checkpoints.metrics_log import read_log
from sonant.objectives.loss import Watch
from sonant.training.config import GuardConfig
from sonant.training.guards import Guard, TrainingError


def kinds(place, kind):
    return [line for line in read_log(f"{place}/metrics.jsonl") if line["kind"] == kind]


def test_a_step_with_a_nan_is_skipped_counted_and_its_utterances_named(tmp_path, capsys):
    run_small(tmp_path, "bad=[u007]", is_silent=False)
    skipped = kinds(tmp_path, "skipped")
    assert len(skipped) == 3  # once in each epoch that was begun
    assert all("u007" in line["ids"] for line in skipped)
    assert kinds(tmp_path, "train")[-1]["skipped_steps"] == 3
    assert "gradients were not finite" in capsys.readouterr().err
    weights = load_file(tmp_path / "bundle/model.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


def test_too_many_such_steps_end_the_run_with_the_batch_and_the_module_at_fault(tmp_path):
    words = ["num_utterances=8", "bad=[u000, u001, u002, u003, u004, u005, u006, u007]", "trainer.guard.max_skips=3"]
    with pytest.raises(TrainingError) as told:
        run_small(tmp_path, *words)
    assert "3 steps in a row" in str(told.value)
    assert "'model.enter' (Linear) is the first module" in str(told.value)
    assert "'u00" in str(told.value)


@pytest.mark.slow
def test_a_run_that_diverges_ends_and_says_so(tmp_path):
    words = ["trainer.optimizer.rate=30", "trainer.max_gradient_norm=0", "trainer.limits.max_steps=2000"]
    with pytest.raises(TrainingError, match="diverges"):
        run_small(tmp_path, *words, "trainer.schedule.kind=constant", "trainer.schedule.warmup=200")
    [alarm] = [line for line in kinds(tmp_path, "alarm") if line["figure"] == "loss_over_lowest"]
    assert "diverges" in alarm["says"]


@pytest.mark.slow
def test_a_run_that_diverges_goes_back_to_its_last_state_with_a_lower_rate(tmp_path, capsys):
    words = ["trainer.optimizer.rate=30", "trainer.max_gradient_norm=0", "trainer.limits.max_steps=1200"]
    words += ["trainer.schedule.kind=constant", "trainer.schedule.warmup=200", "trainer.rhythm.validate=0"]
    back = ["trainer.guard.on_failure=rollback", "trainer.guard.rollback_rate=0.02", "trainer.rhythm.save=25"]
    result = run_small(tmp_path, *words, *back, is_silent=False)
    assert result.is_finished
    [rollback, *_] = kinds(tmp_path, "rollback")
    assert rollback["rate_scale"] == 0.02
    assert "rolled back to step" in capsys.readouterr().err


def guard(**options) -> Guard:
    watch = {"figure": "share", "below": 0.1, "for_steps": 20, "says": "few.", "action": "Mend."} | options
    return Guard(GuardConfig(), [Watch(**watch)])


def test_a_figure_beyond_its_bound_is_told_once_and_again_after_it_was_well():
    watching = guard()
    values = [0.05, 0.05, 0.05, 0.5, 0.05, 0.05, 0.05]
    told = [len(watching.look({"share": value}, 10 + 10 * n, 10)) for n, value in enumerate(values)]
    assert told == [0, 1, 0, 0, 0, 1, 0]


def test_a_figure_may_be_odd_early_on():
    watching = guard(after_step=100)
    told = [len(watching.look({"share": 0.0}, step, 10)) for step in range(10, 200, 10)]
    assert told.index(1) == 11  # from step 110 on, for 20 steps


def test_what_a_guard_has_seen_survives_its_state():
    one, other = guard(), guard()
    one.look({"share": 0.0}, 10, 10)
    one.saw(is_finite=False)
    other.restore(one.state())
    assert other.state() == one.state()
    assert len(other.look({"share": 0.0}, 20, 10)) == 1


def test_dead_gradients_are_told():
    watching = Guard(GuardConfig(), [])
    told = [watch.says for step in range(0, 300, 50) for watch in watching.look({"gradient_norm": 0.0}, step, 50)]
    assert told == ["gradients are all but zero: nothing is learnt any more."]


def test_an_objective_s_own_alarm_reaches_log_and_terminal(tmp_path, capsys):
    words = ["width=1", "trainer.optimizer.rate=0.0", "trainer.limits.max_steps=60", "trainer.rhythm.validate=0"]
    run_small(tmp_path, *words, is_silent=False)
    [alarm] = kinds(tmp_path, "alarm")
    assert (alarm["figure"], alarm["says"]) == ("spread", "all answers are the same.")
    assert "all answers are the same. Lower the rate." in capsys.readouterr().err
