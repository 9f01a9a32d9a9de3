"""Corpora that people made, read as they are."""

from __future__ import annotations

from collections import Counter

import pytest


def test_digits_in_folders_of_speakers(shared, read):
    options = {"pattern": "{speaker}/{digit}_{speaker}_{take}", "labels": ("digit", "gender")}
    utterances, findings = read(f"{shared}/data/audiomnist", annotations=("speakers.json@speaker",), **options)
    assert (len(utterances), findings) == (4800, [])
    assert Counter(one.labels["digit"] for one in utterances) == dict.fromkeys(map(float, range(10)), 480)
    assert {one.labels["gender"] for one in utterances} == {"male", "female"}
    assert {type(one.extra["age"]) for one in utterances} == {str}


def test_digits_in_one_folder(shared, read):
    utterances, findings = read(f"{shared}/data/fsdd", pattern="{digit}_{speaker}_{take}", labels=("digit",))
    assert (len(utterances), len({one.speaker for one in utterances}), findings) == (3000, 6, [])


def test_voices_with_ratings(shared, read):
    utterances, findings = read(f"{shared}/data/voiced", labels=("diagnosis", "vhi", "rsi"))
    assert (len(utterances), findings) == (153, [])
    assert all(isinstance(one.labels["vhi"], float | None) for one in utterances)
    assert {one.speaker for one in utterances} == {one.id for one in utterances}


def test_prompts_with_their_table(shared, read):
    utterances, findings = read(f"{shared}/data/asterisk_en.csv")
    assert (len(utterances), findings) == (568, [])
    assert utterances[0].id == "asterisk_en/activated"
    beside, _ = read(f"{shared}/data/asterisk_en", annotations=("../asterisk_en.csv",))
    assert {one.audio: one.text for one in beside} == {one.audio: one.text for one in utterances}


@pytest.mark.parametrize("labels", [("accuracy",), ("accuracy", "fluency", "prosodic", "total", "completeness")])
def test_scores_beside_a_kaldi_folder(shared, read, labels):
    folder = f"{shared}/data/speechocean762/scored"
    utterances, findings = read(folder, annotations=("scores.csv",), labels=labels)
    assert not [one for one in findings if one.is_error]
    assert {tuple(one.labels) for one in utterances} == {labels}
    assert all(0 <= one.labels["accuracy"] <= 10 for one in utterances)


@pytest.mark.parametrize(
    ("folder", "count", "speakers", "facts"),
    [("speechocean762/train", 2500, 125, {"age", "gender"}), ("iban/train", 1096, 17, set())],
)
@pytest.mark.slow
def test_kaldi_folders(shared, read, folder, count, speakers, facts):
    utterances, findings = read(f"{shared}/data/{folder}")
    assert (len(utterances), len({one.speaker for one in utterances}), findings) == (count, speakers, [])
    assert {one.split for one in utterances} == {"train"}
    assert all(one.text and set(one.extra) == facts for one in utterances)


def test_a_folder_of_kaldi_folders(shared, read):
    utterances, findings = read(f"{shared}/data/speechocean762")
    assert (Counter(one.split for one in utterances), findings) == ({"train": 2500, None: 1700}, [])
