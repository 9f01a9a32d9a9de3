"""Plans: every utterance once an epoch over all ranks, alike at the same moment, little padding, much mixing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base import config
from sonant.base.errors import ConfigError
from sonant.batches.bucketing import (
    BucketingConfig,
    LengthGroupingConfig,
    PlanConfig,
    RandomConfig,
    SortingConfig,
    TokenBucketingConfig,
    plan,
)
from sonant.batches.plans import Plan

durations = st.lists(st.floats(0, 40), max_size=200).map(lambda values: np.array(values, float))
configs = st.one_of(
    st.builds(
        BucketingConfig,
        max_seconds=st.floats(1, 100),
        max_utterances=st.integers(1, 20),
        max_padding=st.floats(0, 0.5),
        target_padding=st.floats(0, 0.2),
    ),
    st.builds(SortingConfig, max_seconds=st.floats(1, 100), max_utterances=st.integers(1, 20)),
    st.builds(RandomConfig, batch_size=st.integers(1, 20)),
    st.builds(LengthGroupingConfig, batch_size=st.integers(1, 20), num_pooled=st.integers(1, 9)),
)


def speech_like(count: int, seed: int = 0) -> np.ndarray:
    """Durations as corpora have them: most of some seconds, a tail to half a minute."""
    return np.random.default_rng(seed).lognormal(1.5, 0.6, count).clip(0.3, 35)


def batches(made: Plan) -> list[np.ndarray]:
    return [made[step] for step in range(len(made))]


def ranks(sizes: np.ndarray, settings: PlanConfig, world: int, **where: int | None) -> list[list[np.ndarray]]:
    return [batches(plan(sizes, settings, rank=rank, world=world, **where)) for rank in range(world)]


@settings(max_examples=150, deadline=None)
@given(sizes=durations, settings=configs, world=st.integers(1, 8), epoch=st.integers(0, 3))
def test_every_utterance_comes_once_an_epoch_over_all_ranks(sizes, settings, world, epoch):
    everyone = ranks(sizes, settings, world, epoch=epoch)
    taken = np.concatenate([batch for mine in everyone for batch in mine] or [np.zeros(0, int)])
    assert sorted(taken) == list(range(len(sizes)))


@settings(max_examples=150, deadline=None)
@given(sizes=durations, settings=configs, world=st.integers(1, 8))
def test_all_ranks_take_equally_many_steps_and_only_the_last_may_be_empty(sizes, settings, world):
    everyone = ranks(sizes, settings, world)
    assert len({len(mine) for mine in everyone}) == 1
    for mine in everyone:
        assert all(len(batch) for batch in mine[:-1])
    assert not len(sizes) or len(everyone[0][-1])


@settings(max_examples=150, deadline=None)
@given(
    sizes=durations, settings=st.one_of(configs.filter(lambda one: isinstance(one, BucketingConfig | SortingConfig)))
)
def test_a_batch_keeps_its_bounds_and_what_exceeds_them_goes_alone_and_is_told(sizes, settings):
    made = plan(sizes, settings)
    assert list(made.overlong) == list(np.flatnonzero(sizes > settings.max_seconds))
    for batch in batches(made):
        padded = len(batch) * sizes[batch].max()
        assert len(batch) <= settings.max_utterances
        assert len(batch) == 1 or padded <= settings.max_seconds
        assert padded - sizes[batch].sum() <= settings.max_padding * padded + 1e-9


@settings(max_examples=50, deadline=None)
@given(sizes=durations, settings=configs)
def test_the_padding_share_is_what_the_batches_have(sizes, settings):
    made = plan(sizes, settings)
    padded = sum(len(batch) * sizes[batch].max() for batch in batches(made))
    assert made.padding_share(sizes) == pytest.approx(1 - sizes.sum() / padded if padded else 0, abs=1e-9)


@pytest.mark.parametrize("settings", [BucketingConfig(), RandomConfig(), LengthGroupingConfig()])
def test_epochs_and_seeds_differ_and_the_same_ones_agree(settings):
    sizes = speech_like(500)
    first = plan(sizes, settings, seed=1, epoch=1).rows
    assert np.array_equal(first, plan(sizes, settings, seed=1, epoch=1).rows)
    assert not np.array_equal(first, plan(sizes, settings, seed=1, epoch=2).rows)
    assert not np.array_equal(first, plan(sizes, settings, seed=2, epoch=1).rows)


def test_another_process_plans_the_same_whatever_its_hash_seed(tmp_path):
    program = (
        "import hashlib; import numpy as np; from sonant.batches.bucketing import *;"
        "made = plan(np.load('sizes.npy'), BucketingConfig(), seed=3, epoch=4, world=2);"
        "print(hashlib.sha256(made.rows.tobytes() + made.ends.tobytes()).hexdigest())"
    )
    np.save(tmp_path / "sizes.npy", speech_like(2000))
    said = {
        subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert b"torch" not in said.pop()


@pytest.mark.parametrize("world", [2, 4, 8])
def test_ranks_have_similar_durations_at_the_same_moment(world):
    sizes = speech_like(4000)
    everyone = ranks(sizes, BucketingConfig(), world, epoch=2)
    longest = np.array([[sizes[batch].max() for batch in mine[:-1]] for mine in everyone])
    shuffled = np.random.default_rng(0).permuted(longest, axis=1)
    spread = (longest.max(0) - longest.min(0)).mean()
    assert spread < 0.15 * (shuffled.max(0) - shuffled.min(0)).mean()


def test_no_rank_is_always_the_one_with_the_shorter_batches():
    sizes = speech_like(4000)
    one, two = (np.array([sizes[batch].max() for batch in mine[:-1]]) for mine in ranks(sizes, BucketingConfig(), 2))
    assert 0.35 < (one > two).mean() < 0.65


def test_one_rank_that_accumulates_takes_what_two_ranks_take():
    sizes = speech_like(1000)
    one = plan(sizes, BucketingConfig(), group=2)
    two = ranks(sizes, BucketingConfig(), 2)
    for step in range(len(one) // 2):
        assert np.array_equal(one[2 * step], two[0][step])
        assert np.array_equal(one[2 * step + 1], two[1][step])


def test_the_incomplete_group_is_not_always_of_the_longest():
    sizes = speech_like(1000)
    last = [plan(sizes, BucketingConfig(), world=8, epoch=epoch) for epoch in range(20)]
    assert np.std([sizes[made.rows[made.ends[-2] :]].max() for made in last]) > 1


# Padding and mixing


def share_met_again(one: Plan, two: Plan) -> float:
    """Of all pairs that meet in a batch of one plan, how many meet in the other too."""
    pairs = [
        {(a, b) for batch in batches(made) for a in batch.tolist() for b in batch.tolist() if a < b}
        for made in (one, two)
    ]
    return len(pairs[0] & pairs[1]) / len(pairs[0])


def test_padding_stays_at_its_target_while_utterances_meet_new_ones_each_epoch():
    sizes = speech_like(20_000)
    made = [plan(sizes, BucketingConfig(), epoch=epoch) for epoch in range(3)]
    assert max(one.padding_share(sizes) for one in made) < 0.03
    assert share_met_again(made[0], made[1]) < 0.2
    # No bucket leaves a short batch behind: only padding adds steps to those of the sorted order.
    assert len(made[0]) < 1.05 * len(plan(sizes, SortingConfig()))


def test_boundaries_move_even_where_padding_leaves_nothing_for_mixing():
    sizes = speech_like(1000)
    made = [plan(sizes, BucketingConfig(target_padding=0.0), epoch=epoch) for epoch in range(2)]
    assert share_met_again(*made) < 0.9


def test_durations_that_are_all_alike_mix_freely():
    sizes = np.full(1000, 2.0)
    made = [plan(sizes, BucketingConfig(), epoch=epoch) for epoch in range(2)]
    assert share_met_again(*made) < 0.12  # 60 of 1000 in a batch: 6 % by chance
    assert made[0].padding_share(sizes) == 0


def test_the_order_of_batches_says_nothing_of_their_durations():
    sizes = speech_like(4000)
    longest = [sizes[batch].max() for batch in batches(plan(sizes, BucketingConfig()))]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3


def test_sorted_plans_are_the_same_in_every_epoch_and_begin_with_the_longest():
    sizes = speech_like(500)
    made = plan(sizes, SortingConfig(), epoch=0)
    assert np.array_equal(made.rows, plan(sizes, SortingConfig(), epoch=5, seed=9).rows)
    assert np.all(np.diff(sizes[made.rows]) <= 0)
    assert made.padding_share(sizes) < 0.05


def test_length_grouping_pads_more_than_buckets_and_less_than_chance():
    sizes = speech_like(4000)
    kinds = (RandomConfig(), LengthGroupingConfig(), BucketingConfig())
    random, grouped, buckets = (plan(sizes, settings).padding_share(sizes) for settings in kinds)
    assert random > 10 * grouped
    assert grouped > buckets
    assert sizes[plan(sizes, LengthGroupingConfig()).rows[0]] == sizes.max()


def test_documents_are_planned_by_tokens():
    sizes = np.random.default_rng(0).integers(1, 2000, 3000)
    settings = TokenBucketingConfig(max_tokens=8000)
    made = plan(sizes, settings, world=2)
    taken = Counter(np.concatenate([row for rank in ranks(sizes, settings, 2) for row in rank]).tolist())
    assert taken == Counter(range(3000))
    assert max(len(batch) * sizes[batch].max() for batch in batches(made)) <= 8000
    assert made.padding_share(sizes) < 0.03


def test_real_durations_are_padded_by_less_than_three_in_a_hundred(shared):
    soundfile = pytest.importorskip("soundfile")
    for corpus in ("speechocean762", "iban"):
        lines = (shared / "data" / corpus / "train" / "wav.scp").read_text().splitlines()
        paths = [shared / "data" / corpus / line.split()[1] for line in lines[::2]]
        sizes = np.array([soundfile.info(path).duration for path in paths])
        made = [plan(sizes, BucketingConfig(max_seconds=60), epoch=epoch) for epoch in range(3)]
        assert max(one.padding_share(sizes) for one in made) < 0.03


@pytest.mark.slow
def test_a_million_utterances_are_planned_in_two_seconds():
    sizes = speech_like(10**6)
    taken = []
    for epoch in range(3):
        started = time.process_time()
        plan(sizes, BucketingConfig(), epoch=epoch, world=8)
        taken.append(time.process_time() - started)
    assert min(taken) < 2


# Configs


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (BucketingConfig, "max_seconds", 0.0),
        (BucketingConfig, "max_utterances", 0),
        (BucketingConfig, "max_padding", 1.0),
        (TokenBucketingConfig, "target_padding", -0.1),
        (SortingConfig, "max_seconds", float("nan")),
        (RandomConfig, "batch_size", 0),
        (LengthGroupingConfig, "num_pooled", 0),
    ],
)
def test_a_bound_that_cannot_be_kept_is_refused_by_name(kind, field, value):
    with pytest.raises(ConfigError, match=f"{field}: {value} was found"):
        kind(**{field: value})


def test_a_config_file_chooses_the_kind_of_plan():
    @dataclass(frozen=True, kw_only=True)
    class Recipe:
        batches: PlanConfig

    chosen = config.from_dict(Recipe, {"batches": {"kind": "random", "batch_size": 4}}, "recipe.yaml")
    assert chosen.batches == RandomConfig(batch_size=4)
