from __future__ import annotations

import pytest

from sonant.base.errors import ConfigError, SourceError
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.registry import SOURCES, open_source, recognise, source_type

HEADER = "client_id\tpath\tsentence\n"
LAYOUTS = {
    "kaldi": ("wav.scp", "text", "scores.csv"),
    "librispeech": ("SPEAKERS.TXT", "dev-clean/84/121/84-121.trans.txt", "dev-clean/84/121/84-121-0000.flac"),
    "common_voice": ("validated.tsv", "clips/a.mp3"),
    "textgrid": ("sub/a.TextGrid", "sub/a.wav", "sub/a.txt"),
    "elan": ("a.eaf", "a.wav"),
    "subtitles": ("a.vtt", "a.mp4"),
    "table": ("metadata.csv", "a.wav"),
    "folder": ("speakers.json", "s1/a.wav", "s1/a.txt", "README.md"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_recognised_by_what_lies_there(lay, name):
    assert recognise(lay(dict.fromkeys(LAYOUTS[name], "x y\n"))) == name


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("t.csv", "table"),
        ("T.TSV", "table"),
        ("t.xlsx", "table"),
        ("t.csv.gz", "table"),
        ("a.TextGrid", "textgrid"),
        ("a.eaf", "elan"),
        ("a.srt", "subtitles"),
        ("a.opus", "folder"),
    ],
)
def test_a_single_file_is_recognised_by_its_name(lay, file, name):
    assert recognise(f"{lay({file: 'x'})}/{file}") == name


def test_a_table_on_the_web_is_recognised_without_asking_for_it():
    assert recognise("https://host.invalid/set/t.csv?token=1") == "table"


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_keeps_the_contract(name):
    source = source_type(name)
    assert source.name == name
    assert source.uses <= set(SourceOptions.__dataclass_fields__)


def test_a_layout_that_does_not_exist_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"--from: there is no layout called 'kadli'.*Did you mean 'kaldi'"):
        open_source("x", SourceOptions(format="kadli"))


def test_what_is_not_recognised_is_told_with_what_was_seen(lay):
    with pytest.raises(SourceError, match=r"it holds a\.pdf, b\.pdf\..*--from"):
        recognise(lay(audio="a.pdf b.pdf"))
    with pytest.raises(SourceError, match="nothing is there"):
        recognise("/nowhere/at/all")


def test_an_option_without_effect_is_refused_with_those_that_have_one(lay):
    folder = lay(audio="a.wav")
    with pytest.raises(ConfigError) as caught:
        open_source(folder, SourceOptions(tiers=("words",)))
    assert caught.value.where == "--tiers"
    assert "'folder'" in caught.value.problem
    assert "--pattern" in caught.value.action


def test_options_of_annotations_are_welcome_only_beside_annotations(lay):
    folder = lay({"a.vtt": "WEBVTT\n\n00:00.000 --> 00:01.000\nhello\n", "x.csv": "id,age\na-0001,30\n"}, audio="a.wav")
    with pytest.raises(ConfigError, match=r"--labels.*--annotations"):
        open_source(folder, SourceOptions(labels=("age",)))
    (one,) = open_source(folder, SourceOptions(labels=("age",), annotations=("x.csv",))).rows()
    assert one.labels == {"age": 30.0}


def test_a_file_uri_is_a_path(lay):
    folder = lay({"my set/t.csv": "path\na.wav\n", "my set/a.wav": ""})
    (one,) = open_source(f"file://{folder}/my%20set").rows()
    assert one.audio == f"{folder}/my set/a.wav"
