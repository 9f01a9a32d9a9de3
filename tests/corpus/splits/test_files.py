"""Splits that are saved come back the same, from any of the three formats and from a bucket."""

from __future__ import annotations

import pytest

from sonant.base.errors import ManifestError, UsageError
from sonant.corpus.splits import SplitConfig, Splits, assign_splits, load_splits, save_splits
from sonant.corpus.utterance import Utterance

SPLITS = Splits(["a", "b", "007"], {"seed0": ["train", "dev", "test"], "seed1": ["dev", None, "train"]})


@pytest.mark.parametrize("name", ["splits.parquet", "splits.csv", "splits.json"])
@pytest.mark.parametrize("place", ["local", "memory"])
def test_what_is_saved_is_loaded(tmp_path, name, place):
    location = f"{tmp_path}/{name}" if place == "local" else f"memory://{tmp_path.name}/{name}"
    save_splits(location, SPLITS)
    loaded = load_splits(location)
    for plan in SPLITS.plans:
        saved = dict(zip(SPLITS.ids, SPLITS.plan(plan), strict=True))
        assert dict(zip(loaded.ids, loaded.plan(plan), strict=True)) == saved
    assert loaded.plan() == loaded.plan("seed0")


@pytest.mark.parametrize("name", ["splits.parquet", "splits.csv", "splits.json"])
def test_what_is_saved_in_a_bucket_is_loaded_from_it(bucket, name):
    save_splits(f"{bucket}/{name}", SPLITS)
    loaded = load_splits(f"{bucket}/{name}")
    assert dict(zip(loaded.ids, loaded.plan("seed1"), strict=True)) == {"a": "dev", "b": None, "007": "train"}


def test_a_list_of_ids_for_each_split_is_understood(tmp_path):
    (tmp_path / "mine.json").write_text('{"train": ["a", "b"], "dev": ["c"]}')
    assert load_splits(f"{tmp_path}/mine.json").plan() == ["train", "train", "dev"]


def test_saved_splits_are_applied_to_a_corpus_by_id(tmp_path):
    save_splits(f"{tmp_path}/s.csv", SPLITS)
    utterances = [Utterance(id=id, audio="x.wav", place="") for id in ("007", "new", "a")]
    config = SplitConfig(by="file", file=f"{tmp_path}/s.csv")
    assert list(assign_splits(utterances, config)) == ["test", None, "train"]
    other = SplitConfig(by="file", file=f"{tmp_path}/s.csv", plan="seed1")
    assert list(assign_splits(utterances, other)) == ["train", None, "dev"]


def test_ids_that_do_not_fit_are_found(tmp_path):
    findings = {found.rule: found.problem for found in SPLITS.findings(["a", "b", "new"])}
    assert set(findings) == {"split-for-unknown-id", "id-without-split"}
    assert "'007'" in findings["split-for-unknown-id"]
    assert "'new'" in findings["id-without-split"]
    assert not list(SPLITS.findings(SPLITS.ids))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.json", "[1, 2]"),
        ("s.json", "{"),
        ("s.json", '{"train": ["a"], "dev": ["a"]}'),
        ("s.csv", "id,seed0\na,train\na,dev\n"),
        ("s.csv", "name,seed0\na,train\n"),
        ("s.parquet", "no parquet"),
    ],
)
def test_a_file_that_is_no_file_of_splits_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ManifestError) as error:
        load_splits(f"{tmp_path}/{name}")
    assert error.value.where == f"{tmp_path}/{name}"


def test_a_plan_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'seed1'"):
        SPLITS.plan("seed_1")


def test_the_format_is_told_by_the_name(tmp_path):
    with pytest.raises(UsageError, match="parquet"):
        save_splits(f"{tmp_path}/splits.txt", SPLITS)
