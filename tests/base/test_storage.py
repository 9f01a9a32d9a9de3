from __future__ import annotations

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.base import remote, storage
from sonant.base.errors import AbsentError, DependencyError, StorageError


@pytest.fixture(params=["here", "s3_bucket", "gs_bucket"])
def root(request, tmp_path) -> str:
    """An empty place: in a folder, or in a bucket."""
    if request.param == "here":
        return str(tmp_path)
    return f"{request.getfixturevalue(request.param)}/{tmp_path.name}"


@pytest.mark.parametrize("content", [b"", b"x", "über\n".encode() * 1000])
def test_what_is_written_is_read_anywhere(root, content):
    place = storage.join(root, "a", "b.bin")
    assert not storage.exists(place)
    storage.write_whole(place, lambda file: file.write(content))
    assert storage.exists(place)
    assert storage.read_bytes(place) == content
    assert storage.fingerprint(place)[0] == len(content)


def test_files_are_listed_sorted_with_the_names_that_open_them(root):
    for name in ("b/2.txt", "b/10.txt", "a.txt", "b/c/ü x.txt"):
        storage.write_text(storage.join(root, name), name)
    found = list(storage.list_files(root))
    assert sorted(found) == sorted(storage.join(root, name) for name in ("a.txt", "b/10.txt", "b/2.txt", "b/c/ü x.txt"))
    assert [storage.read_bytes(location).decode() for location in found] == [path[len(root) + 1 :] for path in found]
    assert storage.is_folder(storage.join(root, "b"))
    assert not storage.is_folder(found[0])


def test_a_stream_is_read_from_anywhere_in_it(root):
    content = bytes(range(256)) * 300
    storage.write_whole(storage.join(root, "x"), lambda file: file.write(content))
    with storage.open_binary(storage.join(root, "x")) as file:
        file.seek(-10, os.SEEK_END)
        assert file.read() == content[-10:]
        file.seek(70_000)
        assert file.read(7) == content[70_000:70_007]


def test_a_mark_stays_until_the_file_changes(root):
    place = storage.join(root, "x")
    storage.write_text(place, "one")
    first = storage.fingerprint(place)
    assert storage.fingerprint(place) == first
    storage.write_text(place, "two")
    assert storage.fingerprint(place) != first


def test_a_failed_write_leaves_what_was_there(root):
    place = storage.join(root, "x")
    storage.write_text(place, "old")

    def fail(file):
        file.write(b"half")
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        storage.write_whole(place, fail)
    assert storage.read_bytes(place) == b"old"
    assert list(storage.list_files(root)) == [place]


def test_what_is_removed_is_gone(root):
    place = storage.join(root, "x")
    storage.write_text(place, "x")
    storage.remove(place)
    assert not storage.exists(place)
    with pytest.raises(AbsentError, match="nothing is there"):
        storage.read_bytes(place)


@pytest.mark.parametrize("ask", [storage.read_bytes, storage.fingerprint, storage.remove])
def test_what_is_absent_is_told_so_by_its_whole_name(root, ask):
    place = storage.join(root, "no", "where")
    if ask is storage.remove and place.startswith("s3"):
        ask(place)  # S3 answers that it is gone, which it is
        return
    with pytest.raises(AbsentError) as caught:
        ask(place)
    assert caught.value.where == place


def test_nothing_is_listed_where_nothing_is(root):
    assert list(storage.list_files(storage.join(root, "no"))) == []


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_bucket_that_does_not_exist_is_told(request, scheme):
    request.getfixturevalue(f"{scheme}_bucket")
    with pytest.raises(StorageError):
        storage.write_text(f"{scheme}://no-such-bucket-here/x", "x")


# --- the web


def test_files_of_a_web_server_are_read_whole_and_in_parts(web, tmp_path):
    content = os.urandom(11 << 20)  # more than fsspec fetches at once
    (tmp_path / "web" / "x y.bin").write_bytes(content)
    place = f"{web}/x%20y.bin"
    assert storage.exists(place)
    assert not storage.exists(f"{web}/no.bin")
    assert storage.read_bytes(place) == content
    assert storage.fingerprint(place)[0] == len(content)
    with storage.open_binary(place) as file:
        file.seek(9_000_000)
        assert file.read(100) == content[9_000_000:9_000_100]


def test_an_empty_file_of_a_web_server(web, tmp_path):
    (tmp_path / "web" / "x").write_bytes(b"")
    assert storage.read_bytes(f"{web}/x") == b""


def test_it_is_known_of_a_web_server_whether_it_gives_parts(web, tmp_path, request):
    (tmp_path / "web" / "x").write_bytes(b"abc")
    assert remote.gives_ranges(f"{web}/x") == (request.node.name.endswith("[parts]"))
    assert remote.gives_ranges("s3://bucket/x")


def test_a_web_server_is_never_written_to(web):
    with pytest.raises(StorageError, match="can only be read"):
        storage.write_text(f"{web}/x", "x")


def test_a_server_that_does_not_answer_is_told_within_seconds():
    with pytest.raises(StorageError, match="cannot be reached"):
        storage.read_bytes("http://127.0.0.1:9/x")


@pytest.mark.parametrize(("scheme", "package"), [("s3", "s3fs"), ("gs", "gcsfs"), ("https", "aiohttp")])
def test_a_missing_library_is_told_with_what_to_install(monkeypatch, scheme, package):
    import fsspec

    def missing(*_, **__):
        raise ImportError(package)

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(DependencyError, match=rf"'{package}'.*pip install 'sonant\[remote\]'"):
        storage.read_bytes(f"{scheme}://bucket/x")


def test_an_unknown_scheme_is_told_with_those_that_are_known():
    with pytest.raises(StorageError, match=r"the scheme 'sss' is not known.*gs://, s3:// or https://"):
        storage.read_bytes("sss://bucket/x")


# --- here


def test_what_is_written_has_the_rights_of_any_new_file(tmp_path):
    storage.write_text(str(tmp_path / "a"), "x")
    (tmp_path / "b").write_text("x")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE((tmp_path / "b").stat().st_mode)


def test_nothing_else_gets_other_rights_while_a_file_is_written(tmp_path, monkeypatch):
    """The mask of rights is that of the whole process, with threads that make folders at the same moment."""

    def change(mask):
        raise AssertionError("the mask is changed")

    monkeypatch.setattr(os, "umask", change)
    storage.write_text(str(tmp_path / "a"), "x")
    assert (tmp_path / "a").read_text() == "x"


def test_a_folder_where_a_file_is_needed_is_told(tmp_path):
    with pytest.raises(StorageError, match="the storage answered"):
        storage.read_bytes(str(tmp_path))


@given(st.lists(st.text("abcé -", min_size=1, max_size=4), min_size=1, max_size=4))
def test_the_parent_of_a_joined_name_is_what_it_was_joined_to(names):
    for folder in ("/data", "s3://bucket/x", "https://host/x"):
        assert storage.parent(storage.join(folder, *names)) == storage.join(folder, *names[:-1])


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://b/x", True),
        ("https://h/x", True),
        ("hf://d", True),
        ("/a/b", False),
        ("C:\\a", False),
        ("file:///a", False),
    ],
)
def test_remote_is_what_has_a_scheme(location, expected):
    assert storage.is_remote(location) is expected


def test_an_absolute_or_remote_name_stands_for_itself():
    assert storage.join("s3://b/x", "/y") == "/y"
    assert storage.join("/a", "s3://b/x") == "s3://b/x"
    assert storage.join("s3://b/", "x\\y") == "s3://b/x/y"
