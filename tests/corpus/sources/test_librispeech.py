from __future__ import annotations

import pytest

from sonant.base.errors import ConfigError

SPEAKERS = ";ID |SEX| SUBSET |MINUTES| NAME\n19 | F | train-clean-100 | 25.19 | Kara\n84   | M | dev-clean | 8.0 | X\n"


@pytest.fixture
def libri(lay) -> str:
    return lay(
        {
            "SPEAKERS.TXT": SPEAKERS,
            "train-clean-100/19/198/19-198.trans.txt": "19-198-0000 HELLO WORLD\n19-198-0001 AGAIN\n",
            "dev-clean/84/121/84-121.trans.txt": "84-121-0000 DEAR\n\n84-121-0001 LOST\n",
        },
        audio="train-clean-100/19/198/19-198-0000.flac train-clean-100/19/198/19-198-0001.flac "
        "dev-clean/84/121/84-121-0000.flac dev-clean/84/121/84-121-0002.flac",
    )


def test_sets_speakers_and_texts_are_read(libri, read):
    utterances, _ = read(libri)
    one = utterances[1]
    assert (one.id, one.text, one.speaker, one.split) == ("19-198-0000", "HELLO WORLD", "19", "train")
    assert one.audio == f"{libri}/train-clean-100/19/198/19-198-0000.flac"
    assert one.place == f"{libri}/train-clean-100/19/198/19-198.trans.txt:1"
    assert one.extra == {"subset": "train-clean-100", "chapter": "198", "sex": "female"}
    assert [(one.id, one.split, one.extra["sex"]) for one in utterances[:1]] == [("84-121-0000", "dev", "male")]


def test_lines_without_recording_and_recordings_without_line_are_told(libri, read):
    _, findings = read(libri)
    assert [(one.rule, one.place.removeprefix(libri), one.id) for one in findings] == [
        ("missing-audio", "/dev-clean/84/121/84-121.trans.txt:3", "84-121-0001"),
        ("empty-text", "/dev-clean/84/121/84-121-0002.flac", "84-121-0002"),
    ]


@pytest.mark.parametrize("below", ["train-clean-100", "train-clean-100/19", "train-clean-100/19/198"])
def test_a_part_of_the_corpus_says_the_same_as_the_whole(libri, read, below):
    whole = [one for one in read(libri)[0] if one.split == "train"]
    assert read(f"{libri}/{below}")[0] == whole


def test_the_sex_may_be_a_label(libri, read):
    assert {one.labels["sex"] for one in read(libri, labels=("sex",))[0]} == {"female", "male"}
    with pytest.raises(ConfigError, match="Did you mean 'sex'"):
        read(libri, labels=("sexx",))
