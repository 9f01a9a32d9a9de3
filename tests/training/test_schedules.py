"""Schedules as functions of the step: their ends, their shapes, and what they refuse."""

from __future__ import annotations

import itertools
import math

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from torch import nn, optim

from sonant.base.errors import ConfigError
from sonant.training.schedules import ScheduleConfig, schedule

KINDS = ["linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "inverse_square_root", "one_cycle"]
ALL = [*KINDS, "exponential", "tri_stage"]


def factors(total, **options):
    made = schedule(ScheduleConfig(**options), total)
    return [made(step) for step in range(total)]


@pytest.mark.parametrize("kind", ALL)
@given(total=st.integers(4, 400), warmup=st.sampled_from([0.0, 0.1, 0.5, 3.0]))
def test_every_schedule_stays_between_nothing_and_the_full_rate(kind, total, warmup):
    found = factors(total, kind=kind, warmup=warmup, final=0.01 if kind in ("exponential", "tri_stage") else 0.0)
    assert all(0 <= factor <= 1 + 1e-9 for factor in found)
    assert max(found) > 0


@pytest.mark.parametrize(
    ("kind", "peer"),
    [
        ("linear", transformers.get_linear_schedule_with_warmup),
        ("cosine", transformers.get_cosine_schedule_with_warmup),
        ("cosine_with_restarts", transformers.get_cosine_with_hard_restarts_schedule_with_warmup),
    ],
)
def test_schedules_of_known_names_are_those_that_are_known(kind, peer):
    optimizer = optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    theirs = peer(optimizer, num_warmup_steps=10, num_training_steps=100)
    found = []
    for _ in range(100):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step()
    ours = factors(100, kind=kind, warmup=10)
    for step in range(11, 100):
        assert ours[step] == pytest.approx(found[step], abs=0.02)


@pytest.mark.parametrize("kind", ["linear", "cosine", "polynomial"])
def test_the_end_is_what_was_asked_for(kind):
    made = schedule(ScheduleConfig(kind=kind, warmup=0, final=0.1), 1000)
    assert made(999) == pytest.approx(0.1, abs=5e-3)


def test_noam_falls_with_the_root_of_the_step():
    made = schedule(ScheduleConfig(kind="inverse_square_root", warmup=100), None)
    assert made(100) == pytest.approx(1, abs=0.01)
    assert made(10_000) / made(40_000) == pytest.approx(2, rel=1e-2)


def test_warming_up_is_a_straight_line():
    found = factors(100, kind="constant", warmup=10)
    steps = [after - before for before, after in itertools.pairwise(found[:10])]
    assert max(steps) - min(steps) < 1e-9
    assert found[10:] == [1.0] * 90


def test_a_schedule_with_an_end_needs_to_know_it():
    with pytest.raises(ConfigError, match="max_steps"):
        schedule(ScheduleConfig(kind="cosine", warmup=5), None)
    with pytest.raises(ConfigError, match="max_steps"):
        schedule(ScheduleConfig(kind="constant", warmup=0.1), None)
    assert schedule(ScheduleConfig(kind="constant", warmup=5), None)(10**9) == 1


def test_an_exponential_never_reaches_nothing():
    with pytest.raises(ConfigError, match="above 0"):
        ScheduleConfig(kind="exponential", final=0.0)
    found = factors(100, kind="exponential", warmup=0, final=0.01)
    ratios = [after / before for before, after in itertools.pairwise(found)]
    assert max(ratios) - min(ratios) < 1e-9
    assert math.isclose(found[-1], 0.01, rel_tol=0.1)


def test_steps_behind_the_end_keep_the_last_rate():
    for kind in KINDS:
        made = schedule(ScheduleConfig(kind=kind, warmup=0), 10)
        assert 0 <= made(50) <= 1


def test_one_cycle_rises_and_falls_without_a_corner():
    found = factors(1000, kind="one_cycle", warmup=0.3)
    bends = [abs(c - 2 * b + a) for a, b, c in zip(found, found[1:], found[2:], strict=False)]
    assert max(bends) < 1e-4
    assert found.index(max(found)) in range(298, 303)
