from __future__ import annotations

import unicodedata

import fsspec
import pytest

from sonant.base.errors import ConfigError, SourceError


def test_every_recording_is_an_utterance_called_by_its_name(lay, read):
    folder = lay(audio="a.wav sub/b.FLAC c/waveform.ogg ._a.wav notes.pdf")
    utterances, findings = read(folder)
    assert [(one.id, one.audio.removeprefix(folder)) for one in utterances] == [
        ("a", "/a.wav"),
        ("c", "/c/waveform.ogg"),
        ("b", "/sub/b.FLAC"),
    ]
    assert findings == []


def test_names_that_occur_in_two_folders_are_told_apart_by_their_paths(lay, read):
    assert [one.id for one in read(lay(audio="x/1.wav y/1.wav y/2.wav"))[0]] == ["x/1", "y/1", "y/2"]


def test_two_files_of_one_name_are_told(lay, read):
    folder = lay(audio="a.flac a.wav")
    utterances, (finding,) = read(folder)
    assert [one.audio for one in utterances] == [f"{folder}/a.flac"]
    assert (finding.rule, finding.place) == ("ambiguous-audio", f"{folder}/a.wav")


@pytest.mark.parametrize("name", ["a.txt", "a.lab", "a.trans.txt", "a.TXT"])
def test_the_text_beside_a_recording_is_its_text(lay, read, name):
    (one, other), _ = read(lay({name: "\ufeffhello\nworld \n"}, audio="a.wav b.wav"))
    assert (one.text, other.text) == ("hello world", None)


def test_texts_are_found_in_another_unicode_form(lay, read):
    names = {unicodedata.normalize("NFC", "zoë.wav"): "", unicodedata.normalize("NFD", "zoë.txt"): "hello"}
    assert read(lay(names))[0][0].text == "hello"


def test_a_text_that_cannot_be_read_is_told_and_costs_no_other(lay, read):
    folder = lay(
        {"a.txt": b"x\ny\x81\n", "b.txt": "fine", "c.txt": "Grüße".encode("cp1252")}, audio="a.wav b.wav c.wav"
    )
    utterances, findings = read(folder)
    assert [one.text for one in utterances] == [None, "fine", "Grüße"]
    assert [(one.rule, one.place) for one in findings] == [
        ("unreadable-text", f"{folder}/a.txt:2"),
        ("guessed-encoding", f"{folder}/c.txt:1"),
    ]


def test_a_pattern_reads_columns_labels_and_further_facts(lay, read):
    folder = lay(audio="s1/7_s1_0.wav s2/3_s2_1.wav")
    first, second = read(folder, pattern="{speaker}/{digit}_{speaker}_{take}", labels=("digit",))[0]
    assert (first.id, first.speaker, first.labels, first.extra) == ("7_s1_0", "s1", {"digit": 7.0}, {"take": "0"})
    assert (second.speaker, second.labels) == ("s2", {"digit": 3.0})


def test_a_pattern_may_name_any_column_of_the_manifest(lay, read):
    (one,), _ = read(lay(audio="valid/s1/hello_1.wav"), pattern="{split}/{speaker}/{text}_{channel}")
    assert (one.split, one.speaker, one.text, one.channel) == ("dev", "s1", "hello", 1)


def test_a_path_outside_the_pattern_is_told(lay, read):
    folder = lay(audio="s1/7_s1.wav s1/7_s2.wav other.wav")
    utterances, findings = read(folder, pattern="{speaker}/{digit}_{speaker}")
    assert [one.id for one in utterances] == ["7_s1"]
    assert [(one.rule, one.place.removeprefix(folder)) for one in findings] == [
        ("bad-path", "/other.wav"),
        ("bad-path", "/s1/7_s2.wav"),
    ]
    assert "'s1' in one place and 's2' in another" in findings[1].problem


def test_a_pattern_that_nothing_matches_is_one_error(lay, read):
    with pytest.raises(SourceError, match=r"no recording matches \{a\}-\{b\}.*'x'"):
        read(lay(audio="x.wav"), pattern="{a}-{b}")


def test_a_label_that_the_pattern_does_not_name_is_answered_with_the_nearest(lay, read):
    with pytest.raises(ConfigError, match="Did you mean 'digit'"):
        read(lay(audio="7_0.wav"), pattern="{digit}_{take}", labels=("digits",))
    with pytest.raises(ConfigError, match="--pattern"):
        read(lay(audio="7_0.wav"), labels=("digit",))


def test_folders_named_after_splits_are_splits_if_all_are(lay, read):
    folder = lay(audio="train/a.wav Test/b.wav validation/x/c.wav")
    assert {one.id: one.split for one in read(folder)[0]} == {"a": "train", "b": "test", "c": "dev"}
    lay(audio="extra/d.wav")
    assert {one.split for one in read(folder)[0]} == {None}
    assert {one.split for one in read(folder, split="dev")[0]} == {"dev"}


def test_a_single_recording_is_a_source(lay, read):
    folder = lay({"a.txt": "hello"}, audio="a.wav b.wav")
    assert [(one.id, one.text) for one in read(f"{folder}/a.wav")[0]] == [("a", "hello")]


def test_a_folder_without_recordings_is_an_error(lay, read):
    with pytest.raises(SourceError, match="no recording below"):
        read(lay({"a.pdf": ""}), format="folder")


def test_a_folder_in_a_bucket_is_read_as_a_local_one(read):
    system = fsspec.filesystem("memory")
    for name, content in {"a.wav": b"", "a.txt": b"hello", "s/b.wav": b""}.items():
        system.pipe(f"/folders/{name}", content)
    try:
        found = [(one.id, one.audio, one.text) for one in read("memory://folders")[0]]
        assert found == [("a", "memory://folders/a.wav", "hello"), ("b", "memory://folders/s/b.wav", None)]
    finally:
        system.rm("/folders", recursive=True)
