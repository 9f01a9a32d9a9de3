from __future__ import annotations

import pytest

from sonant.base.errors import ConfigError, SourceError
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.columns import KNOWN, meaning_of


def columns_of(header: str, has_header: bool = True, **options) -> dict[str, str]:
    return dict(meaning_of("t.csv", header.split(","), SourceOptions(**options), has_header=has_header).columns)


@pytest.mark.parametrize("target", [name for name in KNOWN if not name.startswith("seconds")])
def test_every_known_name_is_known_in_any_spelling(target):
    for name in KNOWN[target]:
        if target == "end" and name == "offset":
            continue
        for spelling in (name, name.upper(), name.replace("_", " ").title(), name.replace("_", "-")):
            assert columns_of(f"{spelling},unheard_of")[target] == spelling


def test_the_usual_header_is_understood():
    found = columns_of("uttid,Audio File,Sentence,client_id,start,end,Set,channel,age")
    assert found == {
        "id": "uttid",
        "audio": "Audio File",
        "text": "Sentence",
        "speaker": "client_id",
        "start": "start",
        "end": "end",
        "split": "Set",
        "channel": "channel",
    }


def test_what_is_told_wins_over_what_is_known():
    found = columns_of("text,sentence,path", columns={"text": "sentence"})
    assert (found["text"], found["audio"]) == ("sentence", "path")


def test_a_misspelt_column_is_answered_with_the_nearest_and_all_there_are():
    with pytest.raises(SourceError) as caught:
        columns_of("path,sentence,age", columns={"text": "sentense"})
    assert caught.value.action == "Did you mean 'sentence'?"
    assert "path, sentence, age" in caught.value.problem
    assert "--columns text=sentense" in caught.value.problem
    with pytest.raises(SourceError, match="Did you mean 'age'"):
        columns_of("path,sentence,age", labels=("agee",))


def test_a_misspelt_manifest_column_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'text'"):
        columns_of("path,sentence", columns={"txet": "sentence"})


def test_a_told_column_may_be_spelt_in_another_case():
    assert columns_of("Pfad,Satz", columns={"audio": "pfad", "text": "SATZ"}) == {"audio": "Pfad", "text": "Satz"}


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("path,onset,offset", "onset", "offset"),
        ("path,offset,duration", "offset", None),
        ("path,begin,stop", "begin", "stop"),
    ],
)
def test_an_offset_is_an_end_only_beside_an_onset(header, start, end):
    found = columns_of(header)
    assert (found.get("start"), found.get("end")) == (start, end)


def test_a_duration_without_a_start_is_no_cut():
    assert "seconds" not in columns_of("path,duration")
    assert "seconds_ms" not in columns_of("path,duration_ms")
    assert columns_of("path,offset,duration")["seconds"] == "duration"
    assert columns_of("path,seconds")["seconds"] == "seconds"
    assert columns_of("path,duration", columns={"seconds": "duration"})["seconds"] == "duration"
    assert columns_of("path,duration", columns={"duration": "duration"})["seconds"] == "duration"


def test_one_time_in_two_units_is_read_once():
    assert "start_ms" not in columns_of("path,start,start_ms")
    assert "start" not in columns_of("path,start,begin_ms", columns={"start_ms": "begin_ms"})


def test_names_of_people_beside_recordings_are_no_ids():
    assert "id" not in columns_of("path,name,text")
    assert columns_of("name,text")["id"] == "name"


def test_further_columns_never_take_a_name_of_the_manifest():
    meaning = meaning_of(
        "t.csv", ["path", "text", "sentence", "peak", "age"], SourceOptions(columns={"text": "sentence"})
    )
    assert meaning.extra == {"source_text": "text", "source_peak": "peak", "age": "age"}


def test_labels_are_neither_known_columns_nor_further_ones():
    meaning = meaning_of("t.csv", ["path", "Set", "age"], SourceOptions(labels=("set", "age")))
    assert (meaning.labels, meaning.columns, meaning.extra) == (("Set", "age"), {"audio": "path"}, {})


def test_the_nameless_index_of_a_table_is_left_out():
    assert meaning_of("t.csv", ["1", "path"], SourceOptions()).extra == {}


def test_without_a_header_two_columns_are_recording_and_text():
    assert columns_of("1,2", has_header=False) == {"audio": "1", "text": "2"}
    assert columns_of("1,2", has_header=False, labels=("2",)) == {"audio": "1"}
    assert columns_of("1,2,3", has_header=False, columns={"text": "3"}) == {"audio": "1", "text": "3"}
    with pytest.raises(SourceError, match="--columns audio=1,text=2"):
        columns_of("1,2,3", has_header=False)
