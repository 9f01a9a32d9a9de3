"""What a step learns: a batch in parts is the whole batch, and every parameter has its place and its rate."""

from __future__ import annotations

import math

import pytest
import torch
from safetensors.torch import load_file
from small_training import SequenceSource, SmallModel, SmallObjective, build, collated, configured, run_small

from sonant.base.errors import ConfigError
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.groups import GroupConfig, group_parameters
from sonant.training.optimizers import Optimizer, OptimizerConfig
from sonant.training.run_folder import RunFolder
from sonant.training.trainer import Trainer

WEIGHTS = "states/step-000005/weights.safetensors"


def trained(place, *words):
    run_small(place, "trainer.limits.max_steps=5", "trainer.rhythm.validate=0", "trainer.rhythm.save=0", *words)
    found = load_file(place / WEIGHTS)
    found.pop("seen")
    return found


def assert_close(one, other, tolerance=1e-5):
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, other[name], rtol=tolerance, atol=tolerance)


def gradients(batches):
    """Of one step over these batches."""
    torch.manual_seed(0)
    model, objective = SmallModel(8, 0.0), SmallObjective()
    counts = {name: sum(objective.counts(batch)[name] for batch in batches) for name in ("frames", "utterances")}
    for batch in batches:
        objective(model, batch, 0).divided_by(counts).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_a_batch_in_parts_gives_the_gradients_of_the_whole(parts):
    source = SequenceSource(configured())
    examples = [source.utterance(row) for row in range(8)]
    whole = gradients([collated(examples)])
    each = 8 // parts
    assert_close(gradients([collated(examples[at : at + each]) for at in range(0, 8, each)]), whole, 1e-6)


def test_uneven_parts_weigh_by_what_they_hold():
    source = SequenceSource(configured())
    examples = [source.utterance(row) for row in range(8)]
    whole = gradients([collated(examples)])
    assert_close(gradients([collated(examples[:1]), collated(examples[1:])]), whole, 1e-6)


def test_accumulated_batches_train_as_large_ones(tmp_path):
    large = trained(tmp_path / "large", "batch_size=8")
    small = trained(tmp_path / "small", "batch_size=4", "trainer.batches_per_step=2")
    assert_close(large, small)


def test_gradients_are_clipped_by_the_norm_of_all_of_them(tmp_path):
    config = configured("trainer.max_gradient_norm=0.001", "trainer.optimizer.kind=adamw")
    engine = Engine(config.trainer)
    run = RunFolder(str(tmp_path))
    with run.held():
        trainer = Trainer(
            build(config)(engine, run, Console(is_silent=True)), config.trainer, run, engine, Console(is_silent=True)
        )
        trainer._step(trainer.loader.endless())
    total = torch.nn.utils.get_total_norm([p.grad for p in trainer.model.parameters()])
    assert float(total) == pytest.approx(0.001, rel=1e-3)


@pytest.mark.slow
def test_a_tiny_model_learns_eight_utterances_by_heart(tmp_path):
    words = ["num_utterances=8", "batch_size=8", "width=32", "trainer.rhythm.log=100", "trainer.schedule.kind=cosine"]
    result = run_small(tmp_path, *words, "trainer.limits.max_steps=600", "trainer.rhythm.validate=0")
    assert result.metrics["loss"] < 1e-3


@pytest.mark.slow
def test_bf16_learns_as_fp32_does(tmp_path):
    steps = ["trainer.limits.max_steps=60"]
    fp32 = run_small(tmp_path / "fp32", *steps)
    bf16 = run_small(tmp_path / "bf16", *steps, "trainer.precision=bf16")
    assert bf16.metrics["loss"] == pytest.approx(fp32.metrics["loss"], rel=0.1)
    assert bf16.metrics["loss"] != fp32.metrics["loss"]


def test_fp16_on_a_processor_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="bf16 or fp32"):
        run_small(tmp_path, "trainer.precision=fp16")


def test_every_parameter_is_in_exactly_one_group_and_in_the_bundle(tmp_path):
    run_small(tmp_path)
    weights = load_file(tmp_path / "bundle/model.safetensors")
    model = SmallModel(8, 0.0)
    assert set(weights) == set(model.state_dict())
    groups = group_parameters(model, {"layers.0.*": GroupConfig(rate=0.1), "leave.*": GroupConfig(rate=10)}, 0.01)
    names = [name for group in groups for name in group.parameters]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())


def test_biases_and_norms_are_not_decayed():
    for group in group_parameters(SmallModel(8, 0.0), {}, 0.01):
        assert {parameter.ndim >= 2 for parameter in group.parameters.values()} == {group.decay > 0}


def test_a_pattern_means_whole_names():
    model = torch.nn.ModuleDict({"layers": torch.nn.ModuleList([torch.nn.Linear(1, 1) for _ in range(12)])})
    groups = group_parameters(model, {"layers.1.*": GroupConfig(rate=0.5)}, 0.01)
    slow = [name for group in groups if group.rate == 0.5 for name in group.parameters]
    assert sorted(slow) == ["layers.1.bias", "layers.1.weight"]


def test_a_pattern_that_fits_nothing_names_the_nearest(tmp_path):
    with pytest.raises(ConfigError, match=r"optimizer\.groups\.leaf.*no parameter"):
        group_parameters(SmallModel(8, 0.0), {"leaf.weight": GroupConfig()}, 0.01)


def test_frozen_parameters_stay_and_the_others_move(tmp_path):
    words = ["trainer.optimizer.groups={enter.*: {frozen: true}}"]
    torch.manual_seed(3)
    before = SmallModel(8, 0.0).state_dict()
    after = trained(tmp_path, *words)
    for name, tensor in after.items():
        assert torch.equal(tensor, before[name]) == name.startswith("enter."), name


def test_a_group_learns_at_its_own_rate():
    model = SmallModel(8, 0.0)
    optimizer = Optimizer(model, OptimizerConfig(rate=0.1, groups={"leave.*": GroupConfig(rate=3.0)}))
    optimizer.set_rate(0.5)
    rates = {
        optimizer.names[p]: group["lr"] for m in optimizer.members for group in m.param_groups for p in group["params"]
    }
    assert rates["leave.weight"] == pytest.approx(0.15)
    assert rates["enter.weight"] == pytest.approx(0.05)


def test_muon_has_the_matrices_and_adamw_the_rest():
    model = SmallModel(8, 0.0)
    config = OptimizerConfig(kind="muon", muon_leaves=("leave.*",))
    muon, adamw = Optimizer(model, config).members
    of_muon = {id(p) for group in muon.param_groups for p in group["params"]}
    of_adamw = {id(p) for group in adamw.param_groups for p in group["params"]}
    for name, parameter in model.named_parameters():
        assert (id(parameter) in of_muon) == (parameter.ndim == 2 and not name.startswith("leave."))
        assert (id(parameter) in of_muon) != (id(parameter) in of_adamw)


def test_an_optimizer_restored_goes_on_as_if_nothing_had_been():
    batch = collated([SequenceSource(configured()).utterance(row) for row in range(4)])
    objective, config = SmallObjective(), OptimizerConfig(kind="muon")
    states = []
    for is_restored in (False, True):
        torch.manual_seed(0)
        model = SmallModel(8, 0.0)
        optimizer = Optimizer(model, config)
        for step in range(4):
            if step == 2 and is_restored:
                state = optimizer.state()
                optimizer = Optimizer(model, config)
                optimizer.restore(state)
            optimizer.zero()
            objective(model, batch, step).divided_by(objective.counts(batch)).backward()
            for member in optimizer.members:
                member.step()
        states.append(model.state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_an_empty_batch_gives_gradients_of_nothing_to_all():
    from sonant.training.learner import Learner

    model, objective = SmallModel(8, 0.0), SmallObjective()
    empty = collated([])
    loss, figures = Learner(model, objective)(empty, objective.counts(empty), {"frames": 9.0, "utterances": 2.0}, 0)
    loss.backward()
    assert not figures
    assert float(loss.detach()) == 0
    assert all(parameter.grad is not None and not parameter.grad.any() for parameter in model.parameters())


def test_steps_follow_from_epochs_where_these_are_given(tmp_path):
    result = run_small(tmp_path, "trainer.limits.max_steps=null", "trainer.limits.max_epochs=1.5")
    assert result.step == math.ceil(40 / 4 * 1.5)


def test_minutes_only_stop_a_run(tmp_path):
    result = run_small(
        tmp_path, "trainer.limits.max_minutes=0.002", "trainer.limits.max_steps=5000", "seconds_per_step=0.02"
    )
    assert not result.is_finished
    assert "minutes" in result.reason
    assert 1 <= result.step < 50


def test_checkpointing_of_a_model_that_has_none_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="SmallModel keeps all"):
        run_small(tmp_path, "trainer.gradient_checkpointing=true")
