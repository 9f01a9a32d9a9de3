"""Recordings in rows: bytes, names of files, and bare numbers, in Parquet files and saved datasets."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.recording import open_recording
from sonant.base.errors import AbsentError, AudioError


def save_dataset(folder: Path, tables: list[pa.Table]) -> str:
    """What `datasets` writes with `save_to_disk`."""
    folder.mkdir(exist_ok=True)
    names = [f"data-{number:05}-of-{len(tables):05}.arrow" for number in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        with pa.ipc.new_stream(str(folder / name), table.schema) as writer:
            writer.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names]}
    (folder / "state.json").write_text(json.dumps(state))
    return str(folder)


def read(address: object, sample_rate: int | None = 8000) -> np.ndarray:
    with open_recording(str(address), sample_rate=sample_rate) as recording:
        samples = recording.read(0, None)
        assert recording.info.num_samples == len(samples)
        return samples


def sounds(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, rng.integers(1, 400)).astype(np.float32) for _ in range(count)]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory) -> tuple[list[np.ndarray], list[str]]:
    """Sounds, and the tables that hold them as numbers: a Parquet file in groups, a saved dataset in shards."""
    folder, rows = tmp_path_factory.mktemp("numbers"), sounds(25)
    table = pa.table({"input_values": [row.tolist() for row in rows]}, pa.schema([("input_values", _FLOATS)]))
    pq.write_table(table, folder / "part.parquet", row_group_size=4)
    shards = [table.slice(0, 7), table.slice(7, 0), table.slice(7, 15), table.slice(22)]
    with pa.ipc.new_file(str(folder / "one.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return rows, [str(folder / "part.parquet"), save_dataset(folder / "train", shards), str(folder / "one.arrow")]


_FLOATS = pa.list_(pa.float32())


@settings(max_examples=30, deadline=None)
@given(row=st.integers(0, 24), first=st.integers(0, 300), num_samples=st.integers(0, 300))
def test_a_segment_of_a_row_is_the_slice_of_the_row(numbers, row, first, num_samples):
    rows, places = numbers
    for place in places:
        with open_recording(f"{place}#{row}/input_values", sample_rate=8000) as recording:
            found = recording.read(first, num_samples)
        np.testing.assert_array_equal(found, rows[row][first : first + num_samples, None])


def test_a_row_beyond_the_table_is_refused(numbers):
    for place in numbers[1]:
        with pytest.raises(AudioError, match="row 25 was asked for, the table has 25"):
            read(f"{place}#25/input_values")


def test_a_misspelt_column_is_answered_with_the_nearest(numbers):
    for place in numbers[1]:
        with pytest.raises(AudioError, match="Did you mean 'input_values'"):
            read(f"{place}#0/input_value")


@pytest.mark.parametrize("member", ["0", "audio", "-1/audio", "x/audio", "0/"])
def test_a_place_in_a_table_is_a_row_and_a_column(numbers, member):
    for place in numbers[1]:
        with pytest.raises(AudioError, match="row/column"):
            read(f"{place}#{member}")


def test_bare_numbers_need_a_sample_rate(numbers):
    with pytest.raises(AudioError, match="--sample-rate"):
        read(f"{numbers[1][0]}#0/input_values", None)


def one(tmp_path: Path, cell: object, type: pa.DataType | None = None) -> str:
    """A Parquet file of this one cell."""
    pq.write_table(pa.table({"audio": pa.array([cell], type)}), tmp_path / "one.parquet")
    return f"{tmp_path}/one.parquet#0/audio"


@pytest.mark.parametrize(
    ("type", "full_scale"),
    [(pa.int8(), 2**7), (pa.int16(), 2**15), (pa.int32(), 2**31), (pa.float32(), 1), (pa.float64(), 1)],
)
def test_numbers_of_any_type_are_shares_of_their_full_scale(tmp_path, type, full_scale):
    values = [0, full_scale // 2, -full_scale if full_scale > 1 else -1]
    found = read(one(tmp_path, values, pa.list_(type)))
    np.testing.assert_array_equal(found[:, 0], np.float32(values) / np.float32(full_scale))


def test_several_channels_stand_side_by_side(tmp_path):
    found = read(one(tmp_path, [[0.5, 0.25, 0.0], [-0.5, 0.0, 1.0]], pa.list_(_FLOATS)))
    np.testing.assert_array_equal(found, np.float32([[0.5, -0.5], [0.25, 0.0], [0.0, 1.0]]))


def test_an_array_with_its_own_sample_rate_needs_no_other(tmp_path):
    address = one(tmp_path, {"array": [0.5, 0.25], "sampling_rate": 22050, "path": None})
    with open_recording(address) as recording:
        assert recording.info.sample_rate == 22050
        np.testing.assert_array_equal(recording.read(0, 9)[:, 0], np.float32([0.5, 0.25]))


def test_names_of_files_are_found_beside_the_table(make_recording, tmp_path):
    made = make_recording("pcm_16.wav")
    expected = read(made.path)
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "a.wav").write_bytes(Path(made.path).read_bytes())
    (tmp_path / "b.wav").write_bytes(Path(made.path).read_bytes())
    for name in ("clips/a.wav", str(tmp_path / "b.wav"), "/gone/machine/b.wav"):
        np.testing.assert_array_equal(read(one(tmp_path, name)), expected)
        np.testing.assert_array_equal(read(one(tmp_path, {"bytes": None, "path": name})), expected)
    with pytest.raises(AbsentError):
        read(one(tmp_path, "absent.wav"))


@pytest.mark.parametrize(
    ("cell", "type", "problem"),
    [
        (None, pa.binary(), "this row holds no recording"),
        (None, _FLOATS, "this row holds no recording"),
        ({"bytes": None, "path": None}, None, "neither bytes nor a path"),
        ([], _FLOATS, "holds no samples"),
        ([[0.5], [0.5, 0.5]], pa.list_(_FLOATS), "channels of this row differ in length"),
        (["a", "b"], None, "not samples"),
        ([True], None, "not samples"),
        ([1000, -1000], pa.list_(pa.int64()), "whole numbers of 64 bits"),
        (3, None, "the column holds int64, not recordings"),
        ({"array": [0.5], "sampling_rate": -16000}, None, "no sample rate of sound"),
        (b"some text that is no sound", None, "this is text"),
    ],
)
def test_a_cell_without_a_recording_says_what_it_holds(tmp_path, cell, type, problem):
    address = one(tmp_path, cell, type)
    with pytest.raises(AudioError, match=problem) as caught:
        read(address)
    assert caught.value.where == address


def test_a_dataset_that_has_been_replaced_is_read_anew(tmp_path):
    for value in (0.25, 0.5):
        place = save_dataset(tmp_path / "train", [pa.table({"x": pa.array([[value] * int(8 * value)], _FLOATS)})])
        assert read(f"{place}#0/x")[0, 0] == value


def test_a_saved_dataset_without_its_state_is_refused(tmp_path):
    place = save_dataset(tmp_path / "train", [pa.table({"x": pa.array([[0.5]], _FLOATS)})])
    (tmp_path / "train" / "state.json").write_text('{"_data_files": [{"name": 3}]}')
    with pytest.raises(AudioError, match="cannot be understood"):
        read(f"{place}#0/x")
    (tmp_path / "train" / "state.json").unlink()
    with pytest.raises(AbsentError):
        read(f"{place}#0/x")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_tables_that_were_cut_are_refused(numbers, tmp_path, share):
    for place in (numbers[1][0], numbers[1][2]):
        content = Path(place).read_bytes()
        (tmp_path / "cut").write_bytes(content[: int(share * len(content))])
        with pytest.raises(AudioError, match="cannot be read"):
            read(f"{tmp_path}/cut#0/input_values")


def test_an_arrow_file_whose_offsets_point_nowhere_is_refused(tmp_path):
    """Arrow itself follows them, and ends the process."""
    table = pa.table({"x": pa.array([[0.5] * 3, [0.5] * 6], _FLOATS)})
    path = Path(save_dataset(tmp_path / "train", [table])) / "data-00000-of-00001.arrow"
    path.write_bytes(path.read_bytes().replace(struct.pack("<iii", 0, 3, 9), struct.pack("<iii", 0, 3, 10**6)))
    for place in (path, path.parent):
        with pytest.raises(AudioError, match="damaged"):
            read(f"{place}#1/x")
