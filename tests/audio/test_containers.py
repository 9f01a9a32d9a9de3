"""A recording inside a container gives what it gives alone, wherever a segment of it is read."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.recording import open_recording
from sonant.audio.waveform import read_waveform
from sonant.base.errors import AudioError

NAMES = ("pcm_16.wav", "deep.flac", "vorbis.ogg", "a.opus", "cbr.mp3", "a.m4a")


@pytest.fixture(scope="module")
def files(make_recording) -> dict[str, bytes]:
    pytest.importorskip("av")
    return {name: Path(make_recording(name, seconds=0.7).path).read_bytes() for name in NAMES}


def write_tar(path: Path, files: dict[str, bytes], format: int = tarfile.PAX_FORMAT) -> None:
    with tarfile.open(path, "w", format=format) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def write_zip(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def addresses(folder: Path, files: dict[str, bytes]) -> dict[str, dict[str, str]]:
    """Each recording as a file of its own, and in every container."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, content in files.items():
        (folder / name).write_bytes(content)
    write_tar(folder / "all.tar", files)
    write_tar(folder / "gnu.tar", {f"./{name}": content for name, content in files.items()}, tarfile.GNU_FORMAT)
    write_zip(folder / "stored.zip", files)
    write_zip(folder / "deflated.zip", files, zipfile.ZIP_DEFLATED)
    table = pa.table({"bytes": list(files.values()), "audio": [{"bytes": c, "path": n} for n, c in files.items()]})
    pq.write_table(table, folder / "part.parquet", row_group_size=4)
    with pa.ipc.new_stream(str(folder / "data.arrow"), table.schema) as writer:
        writer.write_table(table)
    offsets, archive = {}, bytearray()
    for name, content in files.items():
        archive += b"key "
        offsets[name] = len(archive)
        archive += content
    (folder / "raw.ark").write_bytes(archive)
    places = {
        name: {
            "file": name,
            "tar": f"all.tar#{name}",
            "gnu tar": f"gnu.tar#{name}",
            "stored zip": f"stored.zip#{name}",
            "deflated zip": f"deflated.zip#{name}",
            "parquet": f"part.parquet#{row}/bytes",
            "struct in parquet": f"part.parquet#{row}/audio",
            "arrow": f"data.arrow#{row}/audio",
        }
        for row, name in enumerate(files)
    }
    places["pcm_16.wav"]["ark"] = f"raw.ark#{offsets['pcm_16.wav']}"
    return {name: {what: str(folder / place) for what, place in of.items()} for name, of in places.items()}


@pytest.fixture(scope="module")
def places(files, tmp_path_factory) -> dict[str, dict[str, str]]:
    return addresses(tmp_path_factory.mktemp("containers"), files)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=6, deadline=None)
@given(share=st.floats(0, 1), num_samples=st.integers(1, 3000))
def test_a_segment_is_the_same_through_every_container(places, name, share, num_samples):
    with open_recording(places[name]["file"]) as recording:
        info, whole = recording.info, np.concatenate(list(recording.blocks(5000)))
    first = int(share * len(whole))
    for address in places[name].values():
        with open_recording(address) as recording:
            assert recording.info == info, address
            found = recording.read(first, num_samples)
        tolerance = 1e-6 if name.endswith("mp3") else 0
        np.testing.assert_allclose(found, whole[first : first + num_samples], rtol=0, atol=tolerance, err_msg=address)


def test_the_last_recording_of_an_archive_ends_where_it_ends(files, tmp_path):
    content = files["pcm_16.wav"]
    (tmp_path / "two.ark").write_bytes(b"one " + content + b"two " + content)
    (tmp_path / "marked.ark").write_bytes(b"one \0B" + content + b"two \0B" + content)
    expected = read_waveform(f"{tmp_path}/two.ark#4")[0]
    for address in (f"two.ark#{8 + len(content)}", "marked.ark#4", f"marked.ark#{10 + len(content)}"):
        np.testing.assert_array_equal(read_waveform(f"{tmp_path}/{address}")[0], expected)
    assert len(expected) == round(0.7 * 16000)


def test_a_recording_in_an_archive_that_does_not_tell_its_size_is_refused(files, tmp_path):
    content = bytearray(files["pcm_16.wav"])
    content[4:8] = struct.pack("<I", 0)
    (tmp_path / "a.ark").write_bytes(b"one " + content + b"two " + content)
    with pytest.raises(AudioError, match="does not tell its size"):
        read_waveform(f"{tmp_path}/a.ark#4")


def test_a_container_that_has_been_replaced_is_read_anew(files, tmp_path):
    for write, path in ((write_tar, tmp_path / "a.tar"), (write_zip, tmp_path / "a.zip")):
        write(path, {"a.wav": files["pcm_16.wav"]})
        before, _ = read_waveform(f"{path}#a.wav")
        write(path, {"other.flac": files["deep.flac"], "a.wav": files["vorbis.ogg"]})
        after, _ = read_waveform(f"{path}#a.wav")
        assert not np.array_equal(before, after)


def test_a_hard_link_in_a_tar_is_the_recording_it_links_to(files, tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        entry = tarfile.TarInfo("a.wav")
        entry.size = len(files["pcm_16.wav"])
        archive.addfile(entry, io.BytesIO(files["pcm_16.wav"]))
        link = tarfile.TarInfo("b.wav")
        link.type, link.linkname = tarfile.LNKTYPE, "a.wav"
        archive.addfile(link)
    np.testing.assert_array_equal(
        read_waveform(f"{tmp_path}/a.tar#b.wav")[0], read_waveform(f"{tmp_path}/a.tar#a.wav")[0]
    )


@pytest.mark.parametrize("name", ["all.tar", "stored.zip"])
def test_a_misspelt_member_is_answered_with_the_nearest(places, name):
    folder = Path(places["pcm_16.wav"]["file"]).parent
    with pytest.raises(AudioError, match=r"no member 'pcm16\.wav' among its 6 files") as caught:
        read_waveform(f"{folder / name}#pcm16.wav")
    assert caught.value.action == "Did you mean 'pcm_16.wav'?"
    assert caught.value.where == f"{folder / name}#pcm16.wav"


def test_an_archive_that_was_cut_says_so(files, tmp_path):
    write_tar(tmp_path / "a.tar", files)
    content = (tmp_path / "a.tar").read_bytes()
    first_member = 512 + len(files["pcm_16.wav"])
    (tmp_path / "cut.tar").write_bytes(content[: first_member - 1000])
    with pytest.raises(AudioError, match="cut short"):
        read_waveform(f"{tmp_path}/cut.tar#pcm_16.wav")
    write_zip(tmp_path / "a.zip", files)
    (tmp_path / "cut.zip").write_bytes((tmp_path / "a.zip").read_bytes()[:-100])
    with pytest.raises(AudioError, match="cannot be read"):
        read_waveform(f"{tmp_path}/cut.zip#pcm_16.wav")


def test_archives_that_cannot_be_searched_say_what_to_do(files, tmp_path):
    write_tar(tmp_path / "a.tar", files)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress((tmp_path / "a.tar").read_bytes(), 1))
    with pytest.raises(AudioError, match="gunzip"):
        read_waveform(f"{tmp_path}/a.tar.gz#pcm_16.wav")
    write_zip(tmp_path / "a.zip", files, zipfile.ZIP_BZIP2)
    with pytest.raises(AudioError, match="zip -0"):
        read_waveform(f"{tmp_path}/a.zip#pcm_16.wav")
    (tmp_path / "a.wav").write_bytes(files["pcm_16.wav"])
    with pytest.raises(AudioError, match="no container"):
        read_waveform(f"{tmp_path}/a.wav#b.wav")


def test_an_encrypted_member_is_refused(files, tmp_path):
    write_zip(tmp_path / "a.zip", files)
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(AudioError, match="encrypted"):
        read_waveform(f"{tmp_path}/a.zip#pcm_16.wav")


def test_a_member_that_unpacks_to_more_than_it_says_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "bomb.zip"
    write_zip(path, {"a.wav": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<I", 1000)
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(AudioError, match="damaged"):
        read_waveform(f"{path}#a.wav")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_flipped_bytes_in_a_packed_member_are_noticed(files, tmp_path):
    path = tmp_path / "a.zip"
    write_zip(path, {"pcm_16.wav": files["pcm_16.wav"]}, zipfile.ZIP_DEFLATED)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(AudioError, match="this member is damaged"):
        read_waveform(f"{path}#pcm_16.wav")
