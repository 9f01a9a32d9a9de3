"""Splits as `prepare` makes them: written, opened again by plan, and taken over into another corpus."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
import soundfile

import sonant
from sonant.corpus.preparation.config import Limits
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.splits import SplitConfig

RATE = 8000


@pytest.fixture
def people(tmp_path):
    """Thirty people of three utterances each: a diagnosis that all have, an age that some lack, a site that is rare."""
    source = tmp_path / "set"
    source.mkdir()
    rng = np.random.default_rng(0)
    rows = []
    for number in range(90):
        who = number % 30
        soundfile.write(source / f"u{number}.wav", rng.integers(-9000, 9000, 2000).astype(np.int16), RATE)
        diagnosis = "" if who == 7 else "ill" if who % 3 else "well"
        age = "" if who % 4 == 0 else str(30 + who)
        rows.append(f"u{number}.wav,p{who},{diagnosis},{age},{'clinic' if who else 'home'}")
    return source, rows


@pytest.fixture
def prepare(people, tmp_path):
    def made(name="corpus", *, shuffled=False, **splits):
        source, rows = people
        rows = random.Random(1).sample(rows, len(rows)) if shuffled else rows
        (source / "table.csv").write_text("\n".join(["audio,speaker,diagnosis,age,site", *rows]) + "\n")
        options = SourceOptions(labels=("diagnosis", "age", "site"))
        config = sonant.PrepareConfig(workers=1, source=options, limits=Limits(silence_db=-90))
        result = sonant.prepare(str(source), str(tmp_path / name), replace(config, splits=SplitConfig(**splits)))
        return sonant.open_corpus(result.folder)

    return made


def split_of(corpus):
    return {one.id: one.split for one in corpus}


@pytest.mark.parametrize(
    "splits",
    [
        {},
        {"by": "hash"},
        {"stratify": ("diagnosis", "site"), "rare": 3},
        {"counts": {"dev": 9, "test": 9}},
        {"folds": 5, "inner_folds": 2, "seeds": (3, 4)},
    ],
)
def test_the_order_of_the_table_changes_no_split(prepare, splits):
    straight, shuffled = prepare("a", **splits), prepare("b", shuffled=True, **splits)
    assert straight.plans == shuffled.plans
    for plan in straight.plans:
        assert split_of(straight.with_plan(plan)) == split_of(shuffled.with_plan(plan))
    assert straight.description["fingerprint"] == shuffled.description["fingerprint"]


def test_every_plan_is_kept_and_opened_by_its_name(prepare):
    corpus = prepare(folds=5, inner_folds=2, seeds=(0, 1))
    assert len(corpus.plans) == 2 * 5 * 2
    tested = defaultdict(Counter)
    for plan in corpus.plans:
        opened = corpus.with_plan(plan)
        speakers = defaultdict(set)
        for one in opened:
            speakers[one.speaker].add(one.split)
        assert all(len(splits) == 1 for splits in speakers.values())
        assert set(opened.splits) == {"train", "dev", "test"}
        assert len(corpus.split("test", plan=plan)) == opened.splits["test"]
        seed = plan.partition("-")[0]
        tested[seed].update(one.id for one in opened.split("test"))
    assert all(counts == dict.fromkeys(split_of(corpus), 2) for counts in tested.values())  # once for each inner fold


def test_the_splits_of_a_corpus_are_taken_over_by_another(prepare, tmp_path):
    first = prepare("first", seeds=(5,))
    saved = tmp_path / "first" / "manifest.parquet"
    assert split_of(prepare("second", by="file", file=str(saved))) == split_of(first)
    several = prepare("several", seeds=(0, 1))
    plans = str(tmp_path / "several" / "splits.parquet")
    taken = prepare("taken", by="file", file=plans, plan="seed1")
    assert split_of(taken) == split_of(several.with_plan("seed1"))
    assert prepare("both", by="file", file=plans).plans == ["seed0", "seed1"]


def test_who_lacks_only_a_label_that_is_no_target_stays(prepare):
    corpus = prepare(targets=("diagnosis",), stratify=("diagnosis",))
    outside = {one.speaker for one in corpus if one.split is None}
    assert outside == {"p7"}
    assert {one.speaker for one in corpus if one.labels["age"] is None and one.split} == {
        f"p{who}" for who in range(0, 30, 4)
    }
    assert corpus.description["warnings"]["no-split"] == 1


def test_strata_are_spread_and_a_rare_one_is_merged(prepare):
    corpus = prepare(stratify=("diagnosis", "site"), proportions={"train": 0.7, "test": 0.3})
    share = {
        name: np.mean([one.labels["diagnosis"] == "ill" for one in corpus.split(name)]) for name in ("train", "test")
    }
    assert abs(share["train"] - share["test"]) < 0.1
    assert corpus.splits == {"train": 63, "test": 27}


def test_the_command_line_asks_for_all_of_it(people, prepare, tmp_path, capsys):
    from sonant.cli.main import main

    expected = prepare("by-api", stratify=("diagnosis",), seeds=(0, 1), proportions={"train": 0.5, "test": 0.5})
    source = str(people[0])
    labels = ["--labels", "diagnosis,age,site", "--workers", "1"]
    asked = ["--stratify", "diagnosis", "--seeds", "0,1", "--proportions", "train=0.5,test=0.5"]
    assert main(["prepare", source, str(tmp_path / "by-words"), *labels, *asked]) == 0
    made = sonant.open_corpus(str(tmp_path / "by-words"))
    for plan in expected.plans:
        assert split_of(made.with_plan(plan)) == split_of(expected.with_plan(plan))

    for words in (["--split-file", str(tmp_path / "by-words" / "splits.parquet"), "--set", "splits.plan=seed1"],):
        assert main(["prepare", source, str(tmp_path / "again"), *labels, *words]) == 0
        assert split_of(sonant.open_corpus(str(tmp_path / "again"))) == split_of(expected.with_plan("seed1"))
    assert main(["prepare", source, str(tmp_path / "sites"), *labels, "--column", "site"]) == 0
    assert sonant.open_corpus(str(tmp_path / "sites")).splits == {"home": 3, "clinic": 87}
