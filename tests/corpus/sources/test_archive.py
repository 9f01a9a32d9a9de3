from __future__ import annotations

import io
import os
import struct
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sonant.audio.recording import open_recording
from sonant.base.errors import AbsentError, ConfigError, SonantError, SourceError
from sonant.corpus.sources.archives import members
from sonant.corpus.sources.archives.members import Allowance, safe_path
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.registry import open_source, recognise

KINDS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
LAYOUTS: dict[str, Mapping[str, Any]] = {
    "kaldi": {
        "wav.scp": "a wav/a.wav\nb wav/b.wav\n",
        "text": "a one\nb two\n",
        "utt2spk": "a s\nb s\n",
        "wav/a.wav": 1,
        "wav/b.wav": 2,
    },
    "librispeech": {
        "SPEAKERS.TXT": "84 | F | dev-clean | 8.02 | C\n",
        "dev-clean/84/121/84-121.trans.txt": "84-121-0000 GO ON\n",
        "dev-clean/84/121/84-121-0000.wav": 1,
    },
    "subtitles": {"a.vtt": "WEBVTT\n\n00:00.000 --> 00:00.100\nhello\n", "a.wav": 1},
    "table": {
        "t.csv": "path,sentence,age\nclips/a.wav,one,30\nclips/b.wav,two,40\n",
        "clips/a.wav": 1,
        "clips/b.wav": 2,
    },
    "folder": {"s1/a.wav": 1, "s1/a.txt": "one", "s2/b.wav": 2, "s2/b.txt": "two"},
}


def wav(seed: int) -> bytes:
    content = io.BytesIO()
    noise = np.random.default_rng(seed).uniform(-0.5, 0.5, 1600)
    soundfile.write(content, noise, 8000, format="WAV", subtype="PCM_16")
    return content.getvalue()


def bytes_of(content: str | int | bytes) -> bytes:
    """A number stands for a recording."""
    return wav(content) if isinstance(content, int) else content.encode() if isinstance(content, str) else content


def write_archive(location: str, files: Mapping[str, Any], method: int = zipfile.ZIP_DEFLATED) -> str:
    """Packs files; what is packed may also be a TarInfo or ZipInfo without content."""
    if location.endswith(".zip"):
        with zipfile.ZipFile(location, "w", method) as archive:
            for name, content in files.items():
                archive.writestr(name, bytes_of(content))
        return location
    mode = {"gz": "w:gz", "tgz": "w:gz", "bz2": "w:bz2", "xz": "w:xz"}.get(location.rpartition(".")[2], "w")
    with tarfile.open(location, mode) as archive:
        for name, content in files.items():
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            body = b"" if isinstance(content, tarfile.TarInfo) else bytes_of(content)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return location


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sonant" / "archives"


@pytest.fixture
def pack(tmp_path) -> Callable[..., str]:
    def write(files: Mapping[str, Any], name: str = "set.zip", **options: Any) -> str:
        return write_archive(str(tmp_path / name), files, **options)

    return write


def heard(audio: str) -> np.ndarray:
    with open_recording(audio) as recording:
        return recording.read(0, None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_archive_reads_as_the_folder_that_was_packed(lay, read, pack, layout, kind):
    files = LAYOUTS[layout]
    folder = lay({name: bytes_of(content) for name, content in files.items()})
    archive = pack({f"top/set/{name}": content for name, content in files.items()}, f"x{kind}")
    assert recognise(archive) == "archive"
    expected, _ = read(folder)
    found, findings = read(archive)
    assert [one.rule for one in findings] == ([] if kind in (".zip", ".tar") else ["kept-copy"])
    assert len(found) == len(expected) > 0
    for inside, outside in zip(found, expected, strict=True):
        for name in ("id", "text", "speaker", "split", "start", "seconds", "channel", "labels", "extra"):
            assert getattr(inside, name) == getattr(outside, name)
        assert inside.place == outside.place.replace(f"{folder}/", f"{archive}#top/set/")
        np.testing.assert_array_equal(heard(inside.audio), heard(outside.audio))


@given(st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_names_of_recordings_are_reached(tmp_path_factory, data):
    letters = st.text("aé漢 #%+.x-&'\"", min_size=1, max_size=8).filter(lambda name: not name.startswith("."))
    names = data.draw(st.sets(st.lists(letters, min_size=1, max_size=3).map("/".join), min_size=1, max_size=4))
    files = {f"{name}_.wav": number for number, name in enumerate(sorted(names))}
    kind = data.draw(st.sampled_from([".zip", ".tar"]))
    archive = write_archive(str(tmp_path_factory.mktemp("any") / f"x{kind}"), files)
    rows = list(open_source(archive, SourceOptions(format="folder")).rows())
    assert len(rows) == len(files)
    for row in rows:
        number = files[row.audio.partition("#")[2]]
        np.testing.assert_array_equal(heard(row.audio)[:, 0], soundfile.read(io.BytesIO(wav(number)))[0].astype("f4"))


def test_nothing_is_unpacked_beside_the_archive_or_left_behind(pack, read, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    archive = pack(LAYOUTS["table"])
    assert len(read(archive)[0]) == 2
    assert not list((tmp_path / "scratch").iterdir())
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["set.zip"]


def test_a_compressed_tar_is_copied_once_and_the_copy_is_named(pack, read, cache):
    archive = pack(LAYOUTS["folder"], "x.tar.gz")
    found, (kept,) = read(archive)
    (copy,) = cache.iterdir()
    assert (kept.rule, kept.is_error, str(copy) in kept.problem, "--pack" in kept.action) == (
        "kept-copy",
        False,
        True,
        True,
    )
    assert found[0].audio == f"{copy}#s1/a.wav"
    made = copy.stat().st_mtime_ns, copy.stat().st_ino
    read(archive)
    assert (copy.stat().st_mtime_ns, copy.stat().st_ino) == made
    pack({**LAYOUTS["folder"], "s3/c.wav": 3}, "x.tar.gz")
    assert len(read(archive)[0]) == 3  # another archive of that name is another one


def test_a_folder_of_the_archive_may_be_named(pack, read):
    archive = pack({"a/x.wav": 1, "b/c/y.wav": 2, "README": "two sets"})
    assert [one.id for one in read(f"{archive}#b")[0]] == ["y"]
    with pytest.raises(AbsentError, match="has no such folder"):
        read(f"{archive}#d")
    with pytest.raises(AbsentError, match="has no such folder"):
        read(f"{archive}#../..")


def test_a_single_folder_that_names_a_split_keeps_naming_it(pack, read):
    assert [one.split for one in read(pack({"train/a.wav": 1}))[0]] == ["train"]
    found, _ = read(pack({f"set/train/{name}": content for name, content in LAYOUTS["kaldi"].items()}, "k.tar"))
    assert [(one.text, one.split) for one in found] == [("one", "train"), ("two", "train")]


def test_the_format_that_is_told_is_that_of_what_lies_inside(pack, read):
    archive = pack({**LAYOUTS["table"], "x.vtt": "WEBVTT\n"})
    assert len(read(archive, format="folder")[0]) == 2
    assert [one.text for one in read(archive, format="table")[0]] == ["one", "two"]
    with pytest.raises(SourceError, match=rf"{archive}: there is no wav\.scp"):
        read(archive, format="kaldi")


def test_options_go_to_what_lies_inside(pack, read):
    archive = pack(LAYOUTS["table"])
    assert [one.labels for one in read(archive, labels=("age",))[0]] == [{"age": 30.0}, {"age": 40.0}]
    with pytest.raises(ConfigError, match="--tiers: the layout 'table' has no use for it"):
        read(archive, tiers=("words",))


@pytest.mark.parametrize("is_inside", [True, False])
def test_tables_of_annotations_lie_in_the_archive_or_beside_it(pack, read, tmp_path, is_inside):
    table = "id,score\na,5\nb,4\n"
    files = {"a.wav": 1, "b.wav": 2, **({"scores.csv": table} if is_inside else {})}
    if not is_inside:
        (tmp_path / "scores.csv").write_text(table)
    found, findings = read(pack(files), annotations=("scores.csv",), labels=("score",))
    assert not findings
    assert [one.labels["score"] for one in found] == [5, 4]


# --- tolerated


def test_what_packers_leave_beside_the_files_is_passed_over(pack, read):
    files = {"a.wav": 1, "._a.wav": b"\0\5\x16\7", "__MACOSX/._a.wav": b"\0\5\x16\7", ".DS_Store": b"\0"}
    assert len(read(pack(files))[0]) == len(read(pack(files, "x.tar"))[0]) == 1


@pytest.mark.parametrize("name", ["./a.wav", "/a.wav", "./b//a.wav"])
def test_spellings_of_paths_that_mean_a_place_inside(pack, read, name):
    (one,), findings = read(pack({name: 1}, "x.tar"))
    assert not findings
    assert len(heard(one.audio)) == 1600
    assert one.id == "a"


def test_a_zip_of_windows_with_backslashes(tmp_path, read):
    content = Path(
        write_archive(str(tmp_path / "w.zip"), {"sub/a.wav": 1, "sub/t.csv": "path,text\na.wav,hi\n"})
    ).read_bytes()
    (tmp_path / "w.zip").write_bytes(content.replace(b"sub/", b"sub\\"))
    (one,), _ = read(str(tmp_path / "w.zip"))
    assert (one.text, len(heard(one.audio))) == ("hi", 1600)


def test_a_zip_of_macos_whose_utf8_is_not_marked(tmp_path, read):
    path = tmp_path / "m.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("e_.wav", wav(1))
        archive.writestr("t.csv", "path,text\né.wav,hi\n")
    path.write_bytes(path.read_bytes().replace(b"e_.wav", "é.wav".encode()))
    (one,), _ = read(str(path))
    assert (one.text, len(heard(one.audio))) == ("hi", 1600)


def test_two_names_of_one_recording_in_a_tar(pack, read):
    link = tarfile.TarInfo("b.wav")
    link.type, link.linkname = tarfile.LNKTYPE, "a.wav"
    found, findings = read(pack({"a.wav": 1, "b.wav": link}, "x.tar"))
    assert not findings
    np.testing.assert_array_equal(heard(found[0].audio), heard(found[1].audio))


def test_a_name_ending_that_lies_about_the_compression(tmp_path, read):
    write_archive(str(tmp_path / "x.tar.gz"), {"a.wav": 1})
    (tmp_path / "x.tar.gz").rename(tmp_path / "y.tar")
    assert len(read(str(tmp_path / "y.tar"))[0]) == 1


# --- refused


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in (".zip", ".tar") for name in ("../evil.wav", "a/../../evil.wav", "/../evil.wav")]
    + [(".zip", "..\\evil.wav")],  # in a tar a backslash is a letter
)
def test_members_that_would_lie_outside_are_told_and_never_written(pack, read, tmp_path, kind, name):
    found, (fault,) = read(pack({name: 1, "good.wav": 2}, f"x{kind}"))
    assert [one.id for one in found] == ["good"]
    assert (fault.rule, fault.is_error) == ("unsafe-member", True)
    assert "evil" in fault.problem
    assert not list(tmp_path.rglob("evil*"))


@given(st.text("a./\\\0", max_size=12))
def test_no_name_leads_out_of_the_folder(name):
    path = safe_path(name)
    if path is not None:
        assert not os.path.isabs(path)
        assert os.path.normpath(path) == path != "."
        assert ".." not in path.split("/")


def test_links_are_never_followed(pack, read, tmp_path):
    (tmp_path / "secret.wav").write_bytes(wav(9))
    link = tarfile.TarInfo("b.wav")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret.wav")
    device = tarfile.TarInfo("c.wav")
    device.type = tarfile.CHRTYPE
    found, findings = read(pack({"a.wav": 1, "b.wav": link, "c.wav": device}, "x.tar"))
    assert [one.id for one in found] == ["a"]
    assert [(one.rule, one.is_error) for one in findings] == [("skipped-member", False)] * 2
    assert "'b.wav' is a link" in findings[0].problem


def test_links_in_a_zip_are_never_followed(tmp_path, read):
    link = zipfile.ZipInfo("b.wav")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.wav", wav(1))
        archive.writestr(link, "/etc/passwd")
    found, (finding,) = read(str(tmp_path / "x.zip"))
    assert ([one.id for one in found], finding.rule) == (["a"], "skipped-member")


@pytest.mark.parametrize("path", ["{outside}/secret.wav", "../secret.wav", "file://{outside}/secret.wav"])
def test_tables_in_an_archive_cannot_fetch_recordings_from_the_machine(pack, read, tmp_path, path):
    (tmp_path / "secret.wav").write_bytes(wav(9))
    table = f"path,text\na.wav,one\n{path.format(outside=tmp_path)},two\n"
    found, (fault,) = read(pack({"t.csv": table, "a.wav": 1}))
    assert [one.text for one in found] == ["one"]
    assert fault.rule in ("unsafe-member", "missing-audio")
    assert fault.place.endswith("set.zip#t.csv:3")
    assert "/tmp/sonant-" not in fault.problem + fault.action


def test_recordings_elsewhere_are_read_where_somebody_says_so(pack, read, tmp_path):
    (tmp_path / "audio").mkdir()
    (tmp_path / "audio" / "a.wav").write_bytes(wav(1))
    (one,), _ = read(pack({"t.csv": "path,text\na.wav,one\n"}), audio=str(tmp_path / "audio"))
    assert one.audio == str(tmp_path / "audio" / "a.wav")


def test_a_password_is_told_before_anything_is_read(tmp_path, read):
    (tmp_path / "a.wav").write_bytes(wav(1))
    subprocess.run(["zip", "-q", "-P", "secret", "x.zip", "a.wav"], cwd=tmp_path, check=True)
    with pytest.raises(SourceError, match=r"x\.zip: it is protected by a password: 'a\.wav'"):
        read(str(tmp_path / "x.zip"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_an_archive_that_was_cut_short_is_told(pack, read, kind, share, cache):
    path = Path(pack({"a.wav": 1, "t.csv": "path,text\na.wav,x\n"}, f"x{kind}"))
    content = path.read_bytes()
    end = 512 + 4096 + 512 * (share > 0.5) if kind == ".tar" else int(len(content) * share)
    path.write_bytes(content[:end])
    with pytest.raises(SourceError, match=r"damaged or cut short.*again"):
        read(str(path))
    assert not (cache.exists() and list(cache.iterdir()))


def test_a_damaged_text_in_a_zip_is_told(tmp_path, read):
    path = write_archive(str(tmp_path / "x.zip"), {"a.wav": 1, "t.csv": "path,text\na.wav,x\n"}, zipfile.ZIP_STORED)
    Path(path).write_bytes(Path(path).read_bytes().replace(b"path,text", b"path,tExt"))
    with pytest.raises(SourceError, match="damaged"):
        read(path)


@pytest.mark.parametrize("kind", [".zip", ".tar", ".tar.gz"])
def test_an_empty_archive_is_told(pack, read, kind):
    with pytest.raises(SourceError, match="it holds no file"):
        read(pack({}, f"x{kind}"))


def test_archives_in_an_archive_are_told(pack, read, tmp_path):
    inner = Path(pack({"a.wav": 1}, "inner.tar.gz")).read_bytes()
    with pytest.raises(SourceError, match=r"nothing but other archives, among them 'd/inner\.tar\.gz'"):
        read(pack({"d/inner.tar.gz": inner}))
    found, (finding,) = read(pack({"inner.zip": inner, "b.wav": 2}))
    assert ([one.id for one in found], finding.rule) == (["b"], "skipped-member")


def test_recordings_in_a_container_in_an_archive_are_told(pack, read):
    files = {"wav.scp": "a raw.ark:2\n", "text": "a one\n", "raw.ark": b"a " + wav(1)}
    with pytest.raises(SourceError, match=r"in a container in the archive, 'raw\.ark'"):
        read(pack(files))


@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html>", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\7\1\0"])
def test_what_is_no_archive_is_told(tmp_path, read, content):
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(SourceError, match=r"x\.zip: (this is no archive|archives of this kind are not read)"):
        read(str(tmp_path / "x.zip"))


def test_a_method_from_which_no_recording_can_be_read_is_told(pack, read):
    with pytest.raises(SourceError, match=r"'a\.wav' is packed by a method"):
        read(pack({"a.wav": 1}, method=zipfile.ZIP_LZMA))
    assert read(pack({"t.txt": "a text"}, "t.zip", method=zipfile.ZIP_LZMA))[0][0].text == "a text"


def test_a_bomb_of_zip_is_refused_before_anything_is_unpacked(tmp_path, read):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.wav", wav(number))
    content = path.read_bytes()
    for number in range(3):  # each says that it holds 1 GB
        at = content.rindex(f"{number}.wav".encode()) - 46
        content = content[: at + 24] + struct.pack("<I", 10**9) + content[at + 28 :]
    path.write_bytes(content)
    with pytest.raises(SourceError, match="unpacks to more than 200 times"):
        read(str(path))


@pytest.mark.slow
def test_a_bomb_of_gzip_is_refused_on_the_way_and_leaves_nothing(tmp_path, read, cache, monkeypatch):
    monkeypatch.setattr(members, "_UNPACKED_FREELY", 1 << 24)
    import gzip

    with gzip.open(tmp_path / "x.tar.gz", "wb", compresslevel=9) as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    with pytest.raises(SourceError, match="unpacks to more than 200 times"):
        read(str(tmp_path / "x.tar.gz"))
    assert not list(cache.iterdir())


@given(st.integers(1, 10**10), st.lists(st.integers(0, 10**9), max_size=20))
def test_an_allowance_is_spent_exactly_when_it_is_exceeded(packed, sizes):
    allowance, limit = Allowance("x", packed), max(1 << 30, 200 * packed)
    for number, size in enumerate(sizes, start=1):
        if sum(sizes[:number]) > limit:
            with pytest.raises(SourceError):
                allowance.take(size)
            return
        allowance.take(size)


def test_members_that_cannot_lie_beside_each_other_are_left_out(pack, read):
    found, (finding,) = read(pack({"a.wav": 1, "a.wav/b.wav": 2}, "x.tar"))
    assert ([one.id for one in found], finding.rule) == (["a"], "skipped-member")
    found, (finding,) = read(pack({"a.wav": 1, f"{'n' * 300}.wav": 2}, "y.tar"))
    assert ([one.id for one in found], finding.rule) == (["a"], "skipped-member")


def test_faults_inside_are_told_as_places_of_the_archive(pack, read):
    archive = pack({"d/t.csv": "path,text\na.wav,one\nb.wav,two\n", "d/a.wav": 1})
    _, (fault,) = read(archive)
    assert (fault.rule, fault.place) == ("missing-audio", f"{archive}#d/t.csv:3")
    assert f"nor below {archive}#d" in fault.problem
    with pytest.raises(SonantError, match=rf"{archive}"):
        read(pack({"x.pdf": "x"}))
