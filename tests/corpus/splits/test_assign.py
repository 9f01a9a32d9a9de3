"""Laws of splits: nobody is in two, nobody is lost, and the order of the rows never matters."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import ConfigError
from sonant.corpus.splits import SplitConfig, assign_splits, plan_splits
from sonant.corpus.utterance import Utterance

THIRDS = {"train": 0.6, "dev": 0.2, "test": 0.2}


def utterance(id, **fields):
    return Utterance(id=id, **({"audio": f"{id}.wav", "place": "here", "seconds": 2.0} | fields))


def people(num_speakers, per_speaker, **labels):
    return [
        utterance(f"u{who}-{take}", speaker=f"s{who}", labels={name: of(who) for name, of in labels.items()})
        for who in range(num_speakers)
        for take in range(per_speaker)
    ]


corpora = st.lists(st.integers(1, 12), min_size=3, max_size=30).map(
    lambda sizes: [
        utterance(f"u{who}-{take}", speaker=f"s{who}", seconds=1 + take / 7, labels={"sex": "fm"[who % 2], "age": who})
        for who, size in enumerate(sizes)
        for take in range(size)
    ]
)
configs = st.builds(
    SplitConfig,
    by=st.sampled_from(["speaker", "hash"]),
    proportions=st.sampled_from([THIRDS, {"train": 0.7, "test": 0.3}, {"train": 0.8, "dev": 0.1, "test": 0.1}]),
    stratify=st.sampled_from([(), ("sex",), ("sex", "age")]),
    rare=st.integers(1, 5),
    sized_by=st.sampled_from(["utterances", "seconds"]),
    seeds=st.tuples(st.integers(0, 9)),
)


def split_by_id(utterances, config):
    return dict(zip([one.id for one in utterances], assign_splits(utterances, config), strict=True))


@settings(max_examples=60, deadline=None)
@given(corpora, configs, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(utterances, config, rng):
    shuffled = rng.sample(utterances, len(utterances))
    assert split_by_id(shuffled, config) == split_by_id(utterances, config)


@settings(max_examples=60, deadline=None)
@given(corpora, configs)
def test_every_utterance_is_in_one_split_and_no_split_is_empty(utterances, config):
    assert set(assign_splits(utterances, config)) == set(config.shares)


@settings(max_examples=60, deadline=None)
@given(corpora, configs)
def test_a_speaker_never_crosses_splits(utterances, config):
    if config.by == "speaker":
        found = defaultdict(set)
        for one, split in zip(utterances, assign_splits(utterances, config), strict=True):
            found[one.speaker].add(split)
        assert all(len(splits) == 1 for splits in found.values())


@settings(max_examples=60, deadline=None)
@given(corpora, configs)
def test_shares_are_within_the_size_of_one_speaker(utterances, config):
    sizes = Counter(one.speaker for one in utterances)
    if config.by != "speaker" or config.sized_by != "utterances" or len(sizes) < 12:
        return  # in a handful of speakers, filling an empty split comes first
    counts = Counter(assign_splits(utterances, config))
    for name, share in config.shares.items():
        assert abs(counts[name] - share * len(utterances)) <= 2 * max(sizes.values())


@pytest.mark.parametrize("by", ["speaker", "hash"])
def test_a_label_that_is_no_target_changes_nothing(by):
    config = SplitConfig(by=by, stratify=("sex",), targets=("sex",))
    plain = people(30, 3, sex=lambda who: "fm"[who % 2])
    dirty = people(30, 3, sex=lambda who: "fm"[who % 2], score=lambda who: [None, float("nan"), 3.0][who % 3])
    assert split_by_id(dirty, config) == split_by_id(plain, config)
    assert None not in split_by_id(dirty, config).values()


def test_only_utterances_without_a_target_stay_outside():
    utterances = people(30, 2, score=lambda who: None if who < 5 else float(who % 4))
    found = split_by_id(utterances, SplitConfig(by="speaker", targets=("score",)))
    assert {id for id, split in found.items() if split is None} == {
        f"u{who}-{take}" for who in range(5) for take in (0, 1)
    }


def test_the_assignment_is_the_same_for_ever():
    utterances = people(12, 2, sex=lambda who: "fm"[who % 2])
    by_speaker = assign_splits(utterances, SplitConfig(by="speaker", proportions=THIRDS))
    by_hash = assign_splits(utterances, SplitConfig(by="hash", proportions=THIRDS))
    assert "".join(split[1] for split in by_speaker) == "rrrreeeeeerrrrrreerrrree"
    assert "".join(split[1] for split in by_hash) == "eeererrerreerrrrrrrrrrre"


def test_seeds_differ_and_come_all_at_once():
    utterances = people(40, 2)
    splitter = plan_splits(utterances, SplitConfig(by="speaker", seeds=(0, 1, 7)))
    plans = list(zip(*map(splitter.splits_of, utterances), strict=True))
    assert splitter.names == ("seed0", "seed1", "seed7")
    assert len(set(plans)) == 3
    for seed, plan in zip((0, 1, 7), plans, strict=True):
        assert tuple(assign_splits(utterances, SplitConfig(by="speaker", seeds=(seed,)))) == plan


def test_a_growing_corpus_keeps_the_splits_that_the_hash_gave():
    few, many = [utterance(f"u{n}") for n in range(300)], [utterance(f"u{n}") for n in range(900)]
    config = SplitConfig(by="hash")
    grown = split_by_id(many, config)
    assert {id: grown[id] for id in split_by_id(few, config)} == split_by_id(few, config)


def test_speakers_of_all_sizes_land_in_all_splits():
    utterances = [
        utterance(f"u{who}-{n}", speaker=f"s{who}") for who in range(60) for n in range(40 if who < 30 else 2)
    ]
    splits = assign_splits(utterances, SplitConfig(by="speaker", proportions=THIRDS))
    large = Counter(split for one, split in zip(utterances, splits, strict=True) if int(one.speaker[1:]) < 30)
    assert all(large[name] / large.total() > 0.1 for name in THIRDS)


@pytest.mark.parametrize("stratify", [(), ("sex",)])
def test_counts_by_hash_are_exact(stratify):
    utterances = people(50, 5, sex=lambda who: "fff"[who % 3] if who % 7 else "m")
    config = SplitConfig(by="hash", counts={"dev": 13, "test": 20}, stratify=stratify)
    assert Counter(assign_splits(utterances, config)) == {"dev": 13, "test": 20, "train": 217}


def test_where_every_split_has_a_count_the_rest_stays_outside():
    config = SplitConfig(by="hash", counts={"train": 5, "dev": 2, "test": 3})
    found = Counter(assign_splits(people(10, 4), config))
    assert found == {"train": 5, "dev": 2, "test": 3, None: 30}


def test_counts_by_speaker_are_met_within_one_speaker():
    utterances = people(40, 5)
    counts = Counter(assign_splits(utterances, SplitConfig(by="speaker", counts={"test": 23})))
    assert abs(counts["test"] - 23) < 5


def test_labels_are_spread_evenly_over_the_splits():
    utterances = people(80, 3, sex=lambda who: "f" if who < 20 else "m", site=lambda who: who % 3)
    splits = assign_splits(utterances, SplitConfig(by="speaker", proportions=THIRDS, stratify=("sex", "site"), rare=5))
    for name, share in THIRDS.items():
        women = sum(one.labels["sex"] == "f" for one, split in zip(utterances, splits, strict=True) if split == name)
        assert abs(women - share * 60) <= 6


def test_numbers_of_many_values_are_balanced_by_quartile():
    utterances = people(80, 1, age=lambda who: 20 + who * 0.7)
    splits = assign_splits(utterances, SplitConfig(by="speaker", proportions=THIRDS, stratify=("age",)))
    old = Counter(split for one, split in zip(utterances, splits, strict=True) if one.labels["age"] > 62)
    assert abs(old["test"] - 4) <= 1


def test_rare_strata_are_merged():
    utterances = people(60, 1, site=lambda who: f"site{who}" if who < 20 else "main")
    splits = assign_splits(utterances, SplitConfig(by="speaker", proportions=THIRDS, stratify=("site",)))
    rare = Counter(splits[:20])
    assert rare == {"train": 12, "dev": 4, "test": 4}


@pytest.mark.parametrize("by", ["speaker", "hash"])
def test_folds_test_each_utterance_once(by):
    utterances = people(25, 3, sex=lambda who: "fm"[who % 2])
    splitter = plan_splits(utterances, SplitConfig(by=by, folds=5, stratify=("sex",)))
    assert splitter.names == tuple(f"seed0-fold{n}" for n in range(5))
    for one in utterances:
        plans = splitter.splits_of(one)
        assert Counter(plans) == {"test": 1, "dev": 1, "train": 3}


def test_inner_folds_choose_each_remaining_utterance_once():
    utterances = people(30, 2)
    splitter = plan_splits(utterances, SplitConfig(by="speaker", folds=3, inner_folds=4, seeds=(3,)))
    assert splitter.names[:2] == ("seed3-fold0-inner0", "seed3-fold0-inner1")
    for one in utterances:
        plans = splitter.splits_of(one)
        folds = [Counter(plans[first : first + 4]) for first in (0, 4, 8)]
        assert sorted(fold["test"] for fold in folds) == [0, 0, 4]
        assert all(fold["dev"] == 1 for fold in folds if not fold["test"])
    tested = Counter(
        fold for one in utterances for fold, split in enumerate(splitter.splits_of(one)) if split == "test"
    )
    assert set(tested.values()) == {20}


def test_folds_of_different_seeds_differ():
    utterances = people(30, 1)
    splitter = plan_splits(utterances, SplitConfig(by="speaker", folds=3, seeds=(0, 1)))
    plans = list(zip(*map(splitter.splits_of, utterances), strict=True))
    assert plans[:3] != plans[3:]


def test_the_splits_of_the_source_are_used_as_they_are():
    utterances = [utterance("a", split="train", speaker="x"), utterance("b", split="test"), utterance("c")]
    assert list(assign_splits(utterances, SplitConfig())) == ["train", "test", None]


def test_asking_for_a_division_overrules_the_source():
    utterances = [utterance(f"u{n}", split="train", speaker=f"s{n}") for n in range(20)]
    assert set(assign_splits(utterances, SplitConfig(proportions=THIRDS))) == set(THIRDS)


def test_speakers_divide_by_themselves_where_there_are_enough():
    assert plan_splits(people(10, 2), SplitConfig()).by == "speaker"
    assert plan_splits(people(2, 10), SplitConfig()).by == "hash"
    assert plan_splits([utterance("a")], SplitConfig()).by == "hash"


@pytest.mark.parametrize("num_utterances", [0, 1, 2, 3, 7])
def test_corpora_of_a_few_utterances_are_divided_too(num_utterances):
    splits = assign_splits([utterance(f"u{n}") for n in range(num_utterances)], SplitConfig())
    assert len(set(splits)) == min(num_utterances, 3)


def test_utterances_of_unknown_speakers_stand_for_themselves():
    utterances = people(10, 3) + [utterance(f"x{n}") for n in range(40)]
    splits = assign_splits(utterances, SplitConfig(by="speaker", proportions=THIRDS))
    assert len(set(splits[30:])) == 3


def test_a_label_or_further_column_may_hold_the_splits():
    labelled = [utterance(id, labels={"part": part}) for id, part in [("a", "train"), ("b", 2.0), ("c", None)]]
    assert list(assign_splits(labelled, SplitConfig(by="column", column="part"))) == ["train", "2", None]
    assert list(assign_splits([utterance("a", extra={"fold": 3})], SplitConfig(by="column", column="fold"))) == ["3"]


def test_none_leaves_every_utterance_outside():
    assert list(assign_splits([utterance("a", split="train")], SplitConfig(by="none"))) == [None]


def test_whole_percents_that_sum_to_one_are_accepted_whatever_floats_say():
    for train in range(1, 99):
        for dev in range(1, 100 - train):
            parts = {"train": train / 100, "dev": dev / 100, "test": 1 - train / 100 - dev / 100}
            assert set(SplitConfig(proportions=parts).shares) == {"train", "dev", "test"}


@pytest.mark.parametrize("rest", [5e-17, -5e-17, 0.0])
def test_a_remainder_of_rounding_is_no_split(rest):
    assert set(SplitConfig(proportions={"train": 0.7, "dev": 0.3, "test": rest}).shares) == {"train", "dev"}


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"proportions": {"train": 0.8, "dev": 0.1}}, "proportions"),
        ({"proportions": {"train": 1.2, "dev": -0.2}}, "proportions.train"),
        ({"counts": {"dev": -1}}, "counts.dev"),
        ({"seeds": ()}, "seeds"),
        ({"seeds": (1, 1)}, "seeds"),
        ({"folds": 2}, "folds"),
        ({"inner_folds": 3}, "inner_folds"),
        ({"folds": 5, "counts": {"dev": 3}}, "counts"),
        ({"by": "column"}, "column"),
        ({"by": "hash", "column": "fold"}, "column"),
        ({"by": "file"}, "file"),
        ({"plan": "seed1"}, "plan"),
        ({"by": "none", "stratify": ("sex",)}, "stratify"),
        ({"counts": {"dev": 3}, "sized_by": "seconds"}, "sized_by"),
    ],
)
def test_a_setting_that_cannot_be_or_has_no_effect_is_refused(fields, where):
    with pytest.raises(ConfigError) as error:
        SplitConfig(**fields)
    assert error.value.where == where


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (SplitConfig(by="speaker", stratify=("sax",)), "Did you mean 'sex'?"),
        (SplitConfig(by="hash", targets=("sax",)), "Did you mean 'sex'?"),
        (SplitConfig(by="column", column="sax"), "Did you mean 'sex'?"),
        (SplitConfig(by="speaker", folds=20), "only 10 speakers"),
        (SplitConfig(by="hash", counts={"dev": 99}), "only 20"),
    ],
)
def test_what_the_corpus_cannot_give_is_refused_with_the_way_out(config, says):
    with pytest.raises(ConfigError) as error:
        assign_splits(people(10, 2, sex=lambda who: "f"), config)
    assert says in str(error.value)


def test_splitting_by_speaker_needs_speakers():
    with pytest.raises(ConfigError, match="names its speaker"):
        assign_splits([utterance("a"), utterance("b"), utterance("c")], SplitConfig(by="speaker"))


def test_seconds_can_be_what_shares_are_shares_of():
    rng = random.Random(3)
    utterances = [utterance(f"u{n}", speaker=f"s{n}", seconds=rng.choice([1.0, 30.0])) for n in range(100)]
    splits = assign_splits(utterances, SplitConfig(by="speaker", proportions=THIRDS, sized_by="seconds"))
    total = sum(one.seconds for one in utterances)
    for name, share in THIRDS.items():
        seconds = sum(one.seconds for one, split in zip(utterances, splits, strict=True) if split == name)
        assert abs(seconds - share * total) <= 30


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=3, max_size=300), st.integers(0, 5), st.booleans())
def test_parts_of_one_document_stay_together(sizes, seed, is_counted):
    parts = [
        utterance(f"d{number}.{part}", audio=None, extra={"document": f"d{number}", "part": part})
        for number, size in enumerate(sizes)
        for part in range(size)
    ]
    counted = {"sized_by": "seconds"} if is_counted else {}
    found = split_by_id(parts, SplitConfig(by="hash", proportions=THIRDS, seeds=(seed,), **counted))
    for number, size in enumerate(sizes):
        assert len({found[f"d{number}.{part}"] for part in range(size)}) == 1
