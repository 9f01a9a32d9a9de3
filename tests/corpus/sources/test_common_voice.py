from __future__ import annotations

import pytest

HEADER = "client_id\tpath\tsentence\tup_votes\tage\tlocale\n"
ROWS = ['c1\tcv_1.mp3\t"Hello" he said, once.\t2\ttwenties\ten\n', "c2\tcv_2.mp3\tTwo\t3\t\ten\n"]


@pytest.fixture
def voices(lay) -> str:
    files = {"validated.tsv": HEADER + "".join(ROWS), "train.tsv": HEADER + ROWS[0], "other.tsv": HEADER + ROWS[1]}
    return lay(files, audio="clips/cv_1.mp3 clips/cv_2.mp3")


def test_its_own_splits_are_taken(voices, read):
    (one,), findings = read(voices)
    assert (one.id, one.audio, one.speaker, one.split) == ("cv_1", f"{voices}/clips/cv_1.mp3", "c1", "train")
    assert one.text == '"Hello" he said, once.'
    assert one.extra == {"up_votes": "2", "age": "twenties", "locale": "en"}
    assert (one.place, findings) == (f"{voices}/train.tsv:2", [])


def test_other_tables_are_read_when_asked_for(voices, read):
    assert [(one.id, one.split) for one in read(voices, table="validated.tsv")[0]] == [("cv_1", None), ("cv_2", None)]
    assert read(voices, table="train.tsv")[0][0].split == "train"


def test_without_splits_everything_validated_is_taken(lay, read):
    folder = lay({"validated.tsv": HEADER + "".join(ROWS)}, audio="clips/cv_1.mp3 clips/cv_2.mp3")
    utterances, _ = read(folder, labels=("up_votes",))
    assert [(one.id, one.split, one.labels) for one in utterances] == [
        ("cv_1", None, {"up_votes": 2.0}),
        ("cv_2", None, {"up_votes": 3.0}),
    ]


def test_a_missing_clip_is_told_with_its_line(voices, lay, read):
    lay({"train.tsv": HEADER + "".join(ROWS) + "c3\tcv_3.mp3\tx\t0\t\ten\n"})
    _, (finding,) = read(voices)
    assert (finding.rule, finding.place) == ("missing-audio", f"{voices}/train.tsv:4")
