from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.cmvn import CmvnStatistics, read_cmvn, write_cmvn
from sonant.base.errors import SourceError, UsageError


def frames(num_frames: int, seed: int = 0) -> np.ndarray:
    return (10 + 3 * np.random.default_rng(seed).standard_normal((num_frames, 5))).astype(np.float32)


@given(cuts=st.lists(st.integers(0, 200), max_size=6), order=st.randoms())
@settings(max_examples=30, deadline=None)
def test_statistics_of_parts_add_up_to_those_of_the_whole_in_any_order(cuts: list[int], order) -> None:
    features = frames(200)
    parts = [CmvnStatistics.of(part) for part in np.split(features, sorted(cuts))]
    order.shuffle(parts)
    total = sum(parts, start=CmvnStatistics.none(5))
    exact = features.astype(np.float64)
    assert total.num_frames == 200
    np.testing.assert_allclose(total.mean, exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(total.istd, 1 / exact.std(axis=0), rtol=1e-9)


def test_a_feature_that_never_changes_has_a_finite_deviation() -> None:
    assert CmvnStatistics.of(np.ones((3, 2))).istd.tolist() == [1e10, 1e10]


@pytest.mark.parametrize("name", ["global_cmvn.json", "global_cmvn"])
def test_what_is_written_is_read_to_the_last_bit(name: str, tmp_path: Path) -> None:
    statistics = CmvnStatistics.of(frames(123))
    write_cmvn(statistics, str(tmp_path / name))
    found = read_cmvn(str(tmp_path / name))
    assert found.num_frames == 123
    assert (found.sums.tolist(), found.squares.tolist()) == (statistics.sums.tolist(), statistics.squares.tolist())


def test_json_has_wenets_keys(tmp_path: Path) -> None:
    write_cmvn(CmvnStatistics.of(np.array([[1.0, 2.0], [3.0, 4.0]])), str(tmp_path / "cmvn.json"))
    expected = {"mean_stat": [4.0, 6.0], "var_stat": [10.0, 20.0], "frame_num": 2}
    assert json.loads((tmp_path / "cmvn.json").read_text()) == expected


def test_text_stands_as_kaldi_writes_it(tmp_path: Path) -> None:
    write_cmvn(CmvnStatistics.of(np.array([[1.0, 2.0], [3.0, 4.0]])), str(tmp_path / "global_cmvn"))
    numbers = (tmp_path / "global_cmvn").read_text().split()
    assert numbers[0] == "["
    assert numbers[-2:] == ["0", "]"]
    assert [float(number) for number in numbers[1:-2]] == [4, 6, 2, 10, 20]


@pytest.mark.parametrize("text", [" [\n  4 6 2\n  10 20 0 ]\n", "global  [ 4.0 6.0 2 10.0 20.0 0 ]\n"])
def test_kaldi_matrices_are_read_with_and_without_their_key(text: str, tmp_path: Path) -> None:
    (tmp_path / "cmvn.ark").write_text(text)
    found = read_cmvn(str(tmp_path / "cmvn.ark"))
    assert (found.sums.tolist(), found.squares.tolist(), found.num_frames) == ([4, 6], [10, 20], 2)
    assert found.mean.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"\0BDM \4", "--binary=false"),
        (b"global \0BDM \4", "--binary=false"),
        (b'{"mean_stat": [1], "var_stat": [1]}', "'frame_num' is missing"),
        (b'{"mean_stat": [1, 2], "var_stat": [1], "frame_num": 3}', "belong together"),
        (b'{"mean_stat": [1], ', "no CMVN statistics"),
        (b"[ 1 2 3 ]", "3 numbers"),
        (b"[ 1 2 a 4 ]", "no CMVN statistics"),
        (b"[ 1 2 1 2", "in brackets"),
        (b"[ 1 0 1 0 ]", "0 frames"),
        (b"[ nan 2 3 0 ]", "not finite"),
        (b"[ 1 2 -3 0 ]", "negative"),
        (b"\xff\xfe\xfd", "no CMVN statistics"),
    ],
)
def test_a_file_that_is_something_else_is_refused_with_its_place(content: bytes, word: str, tmp_path: Path) -> None:
    (tmp_path / "cmvn").write_bytes(content)
    with pytest.raises(SourceError, match=word) as caught:
        read_cmvn(str(tmp_path / "cmvn"))
    assert caught.value.where == str(tmp_path / "cmvn")


def test_nothing_has_no_mean() -> None:
    with pytest.raises(UsageError, match="not a single frame"):
        _ = CmvnStatistics.none(3).mean
