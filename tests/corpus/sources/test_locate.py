from __future__ import annotations

import os
import unicodedata

import fsspec
import pytest

from sonant.base.errors import SourceError
from sonant.corpus.sources.locate import AudioFinder, audio_folder, entries, glimpse, is_audio, list_audio, stem
from sonant.corpus.utterance import Finding

ZOE = unicodedata.normalize("NFC", "zoë.wav")
ZOE_APART = unicodedata.normalize("NFD", "zoë.wav")


@pytest.mark.parametrize(
    ("there", "name", "meant"),
    [
        ("a.wav", "a.wav", "a.wav"),
        ("a.wav", "a", "a.wav"),
        ("a.flac", "a.wav", "a.flac"),
        ("A.WAV", "a.wav", "A.WAV"),
        ("sub/a.wav", "sub/a.wav", "sub/a.wav"),
        ("sub/a.wav", r"sub\a.wav", "sub/a.wav"),
        ("sub/a.wav", r"C:\Users\me\set\sub\a.wav", "sub/a.wav"),
        ("sub/a.wav", "/home/else/set/sub/a.wav", "sub/a.wav"),
        ("sub/a.wav", "a.wav", "sub/a.wav"),
        ("sub/a.wav", "set/sub/a.wav", "sub/a.wav"),
        (ZOE_APART, ZOE, ZOE_APART),
        (ZOE, ZOE_APART, ZOE),
        ("a.v2.wav", "a.v2", "a.v2.wav"),
        ("a#1.wav", "a#1.wav", "a%231.wav"),
        ("shard.tar", "shard.tar#a.wav", "shard.tar#a.wav"),
    ],
)
def test_a_recording_is_found_however_its_name_is_spelt(lay, there, name, meant):
    folder = lay(audio=there)
    assert AudioFinder(folder).find(name, place="t.csv:2") == f"{folder}/{meant}"


@pytest.mark.parametrize("spelling", ["/", "\\"])
def test_the_folder_in_a_name_is_never_ignored(lay, spelling):
    folder = lay(audio="a.wav sub/a.wav other/b.wav b.wav")
    assert AudioFinder(folder).find(f"sub{spelling}a.wav", place="p") == f"{folder}/sub/a.wav"
    found = AudioFinder(folder).find(f"sub{spelling}b.wav", place="p")
    assert isinstance(found, Finding)
    assert found.rule == "missing-audio"


def test_the_best_spelling_wins_alone(lay):
    folder = lay(audio="a.wav A.wav a.flac")
    assert AudioFinder(folder).find("a.wav", place="p") == f"{folder}/a.wav"
    assert AudioFinder(folder).find("A.wav", place="p") == f"{folder}/A.wav"


def test_names_that_may_mean_several_files_are_told_with_all_of_them(lay):
    folder = lay(audio="x/a.wav y/a.wav")
    found = AudioFinder(folder).find("a.wav", place="t.csv:7", id="u")
    assert isinstance(found, Finding)
    assert (found.rule, found.place, found.id) == ("ambiguous-audio", "t.csv:7", "u")
    assert "x/a.wav" in found.problem
    assert "y/a.wav" in found.problem


def test_a_missing_recording_is_told_with_place_and_action(lay):
    found = AudioFinder(lay(audio="._a.wav __MACOSX/a.wav")).find("a.wav", place="t.csv:3", id="a")
    assert isinstance(found, Finding)
    assert (found.rule, found.place) == ("missing-audio", "t.csv:3")
    assert "--audio" in found.action


@pytest.mark.parametrize("name", ["", ".", "/", "\0", "x" * 5000, "https:/b"])
def test_nonsense_in_a_cell_is_a_finding_not_a_crash(lay, name):
    assert isinstance(AudioFinder(lay(audio="a.wav")).find(name, place="p"), Finding)


def test_web_addresses_are_taken_on_trust():
    finder = AudioFinder("https://host/set")
    assert finder.find("https://other/a.wav?x=1", place="p") == "https://other/a.wav?x=1"
    assert finder.find("clips/a.wav", place="p") == "https://host/set/clips/a.wav"


def test_file_uris_are_paths(lay):
    folder = lay({"my file.wav": b""})
    assert AudioFinder(folder).find(f"file://{folder}/my%20file.wav", place="p") == f"{folder}/my file.wav"


def test_a_folder_that_may_not_be_listed_is_not_called_empty(lay):
    folder = lay(audio="sub/a.wav")
    os.chmod(f"{folder}/sub", 0)
    try:
        if os.access(f"{folder}/sub", os.R_OK):
            pytest.skip("this user may read everything")
        with pytest.raises(Exception, match="access is denied"):
            AudioFinder(folder).find("sub/a.wav", place="p")
    finally:
        os.chmod(f"{folder}/sub", 0o755)


def test_remote_folders_are_searched_as_local_ones_are():
    system = fsspec.filesystem("memory")
    for path in ("/locate/sub/a.wav", "/locate/b.flac"):
        system.pipe(path, b"")
    finder = AudioFinder("memory://locate")
    assert finder.find("b.wav", place="p") == "memory://locate/b.flac"
    assert finder.find(r"D:\x\sub\a.wav", place="p") == "memory://locate/sub/a.wav"
    assert isinstance(finder.find("c", place="p"), Finding)
    assert entries("memory://locate") == ["b.flac", "sub/"]
    system.rm("/locate", recursive=True)


def test_litter_is_no_recording(lay):
    folder = lay(audio="a.WAV b.txt ._a.wav sub/c.opus __MACOSX/d.wav .e.wav")
    assert [path.removeprefix(folder + "/") for path in list_audio(folder)] == ["a.WAV", "sub/c.opus"]
    assert not is_audio("x/._a.wav")
    assert stem(r"x\a.b.WAV") == "a.b"


def test_a_glimpse_is_short_however_large_the_folder(lay):
    folder = lay(audio=" ".join(f"sub/{n}.wav" for n in range(40)))
    assert len(list(glimpse(folder, entries(folder), count=10))) == 10


def test_the_audio_folder_is_seen_from_the_source_or_from_here(lay, monkeypatch):
    folder = lay(audio="clips/a.wav")
    monkeypatch.chdir(folder)
    assert audio_folder(folder, "clips") == f"{folder}/clips"
    assert audio_folder("/somewhere", "clips") == "clips"
    assert audio_folder(f"{folder}/clips", "..") == folder
    with pytest.raises(SourceError, match="no such folder"):
        audio_folder(folder, "clip")
