from __future__ import annotations

import json

import pytest

from sonant.base.errors import ConfigError, SourceError

SPEAKERS = json.dumps({"s1": {"age": 30, "gender": "male"}, "s2": {"age": "23", "gender": "female"}}, indent=1)
PATTERN = "{speaker}/{digit}_{speaker}"


@pytest.fixture
def digits(lay) -> str:
    return lay({"speakers.json": SPEAKERS}, audio="s1/7_s1.wav s2/7_s2.wav s2/8_s2.wav")


def test_facts_of_speakers_join_their_utterances(digits, read):
    options = {"pattern": PATTERN, "labels": ("digit", "gender"), "annotations": ("speakers.json@speaker",)}
    utterances, findings = read(digits, **options)
    assert findings == []
    assert [(one.id, one.labels, one.extra) for one in utterances] == [
        ("7_s1", {"digit": 7.0, "gender": "male"}, {"age": "30"}),
        ("7_s2", {"digit": 7.0, "gender": "female"}, {"age": "23"}),
        ("8_s2", {"digit": 8.0, "gender": "female"}, {"age": "23"}),
    ]


def test_scores_join_by_id(lay, read):
    folder = lay({"t.csv": "id,path\n007,a.wav\nb,b.wav\n", "scores.csv": "utterance,fluency\nb,9\n007,8.5\n"})
    lay(audio="a.wav b.wav")
    utterances, findings = read(folder, labels=("fluency",), annotations=("scores.csv",))
    assert [(one.id, one.labels) for one in utterances] == [("007", {"fluency": 8.5}), ("b", {"fluency": 9.0})]
    assert findings == []


def test_labels_may_come_from_several_tables_at_once(lay, read):
    files = {"t.csv": "id,path,mood\na,a.wav,glad\n", "x.csv": "id,age\na,30\n", "y.csv": "id,sex\na,f\n"}
    folder = lay(files, audio="a.wav")
    (one,), _ = read(folder, labels=("mood", "age", "sex"), annotations=("x.csv", "y.csv"))
    assert one.labels == {"mood": "glad", "age": 30.0, "sex": "f"}


def test_a_table_of_recordings_joins_by_their_paths(lay, read):
    folder = lay({"texts.csv": "path,text\nset/x/a.ogg,one\nset\\a.ogg,two\nb,three\n"}, audio="x/a.wav a.wav x/b.wav")
    utterances, findings = read(folder, annotations=("texts.csv",), format="folder")
    assert {one.id: one.text for one in utterances} == {"x/a": "one", "a": "two", "x/b": "three"}
    assert findings == []


def test_columns_of_both_sides_can_be_told(digits, lay, read):
    lay({"facts.csv": "who,number,note\n1,7,x\n2,8,y\n"})
    utterances, _ = read(digits, pattern=PATTERN, annotations=("facts.csv@digit=number",))
    assert [one.extra["note"] for one in utterances] == ["x", "x", "y"]


def test_annotations_fill_gaps_and_contradict_nothing(lay, read):
    files = {"t.csv": "id,path,speaker\na,a.wav,s1\nb,b.wav,\n", "more.csv": "id,speaker,text\na,other,x\nb,s2,y\n"}
    folder = lay(files, audio="a.wav b.wav")
    found = [(one.speaker, one.text) for one in read(folder, annotations=("more.csv",))[0]]
    assert found == [("s1", "x"), ("s2", "y")]


def test_what_fits_nowhere_is_told_and_counted(digits, lay, read):
    lay({"scores.csv": "id,score\n7_s1,1\n7_s9,2\n7_s1,3\n,4\n"})
    utterances, findings = read(digits, labels=("score",), annotations=("scores.csv",), format="folder")
    assert [one.labels for one in utterances] == [{"score": 1.0}, {"score": None}, {"score": None}]
    assert [(one.rule, one.place.removeprefix(digits), one.is_error) for one in findings] == [
        ("bad-line", "/scores.csv:4", True),
        ("bad-line", "/scores.csv:5", True),
        ("missing-annotation", "/scores.csv", False),
        ("unused-annotation", "/scores.csv", False),
    ]
    assert "2 utterances" in findings[2].problem
    assert "'7_s9'" in findings[3].problem


def test_annotations_that_fit_nothing_at_all_are_an_error_that_shows_both_sides(digits, lay, read):
    lay({"scores.csv": "id,score\nutt-1,1\n"})
    _, (finding,) = read(digits, annotations=("scores.csv",), format="folder")
    assert finding.is_error
    assert "'utt-1'" in finding.problem
    assert "'7_s1'" in finding.problem


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"annotations": ("score.csv",)}, SourceError, "not there"),
        ({"annotations": ("scores.csv@speaker=wh",)}, SourceError, "Did you mean 'who'"),
        ({"annotations": ("scores.csv@chapter",)}, SourceError, "chapter"),
        ({"annotations": ("scores.csv@speaker=who",), "labels": ("scor",)}, ConfigError, "Did you mean 'score'"),
    ],
)
def test_mistakes_in_the_request_are_answered(digits, lay, read, options, error, says):
    lay({"scores.csv": "who,score\ns1,1\n"})
    with pytest.raises(error, match=says):
        read(digits, format="folder", **options)
