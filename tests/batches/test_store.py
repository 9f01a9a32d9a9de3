"""What was put is got, to the bit, or nothing is: after kills, by several processes, within a limit, over damage."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sonant.base.errors import ConfigError
from sonant.batches.segment import DTYPES, ENTRY_BYTES, SegmentReader
from sonant.batches.store import FeatureKey, Store, StoreConfig

KEY = FeatureKey(
    content="9f", start=0.0, seconds=1.5, channel=None, front_end="a", weights="b", layer="6", precision="float16"
)


def key(number: int) -> bytes:
    return replace(KEY, layer=str(number)).digest()


def content(number: int, size: int = 1000) -> np.ndarray:
    """An array that belongs to a number, so that a wrong one is recognised."""
    return np.random.default_rng(number).integers(0, 2**16, (1 + number % 7, size)).astype(np.uint16)


def files(folder: Path, ending: str) -> list[Path]:
    return sorted(folder.glob(f"*{ending}"))


kinds = st.sampled_from(DTYPES).map(np.dtype)
shapes = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@settings(max_examples=60, deadline=None)
@given(array=kinds.flatmap(lambda kind: arrays.arrays(kind, shapes)))
def test_what_is_got_has_the_bits_that_were_put(array, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("store"))
    with Store(folder) as store:
        assert store.put(key(0), array)
        for found in (store.get(key(0)), Store(folder).get(key(0))):
            assert found.dtype == array.dtype
            assert found.shape == array.shape
            assert found.tobytes() == array.tobytes()


def test_an_array_that_is_not_contiguous_comes_back_as_it_looks(tmp_path):
    array = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::3]
    with Store(str(tmp_path)) as store:
        store.put(key(0), array)
        np.testing.assert_array_equal(store.get(key(0)), array)


def test_what_is_got_cannot_be_written(tmp_path):
    with Store(str(tmp_path)) as store:
        store.put(key(0), content(0))
        assert not store.get(key(0)).flags.writeable


@pytest.mark.parametrize("name", FeatureKey.__dataclass_fields__)
def test_any_difference_is_a_miss(tmp_path, name):
    other = replace(KEY, **{name: 2.5 if name in ("start", "seconds") else 1 if name == "channel" else "other"})
    with Store(str(tmp_path)) as store:
        store.put(KEY.digest(), content(0))
        assert store.get(other.digest()) is None


def test_another_process_finds_at_once_what_one_has_put(tmp_path):
    reader = Store(str(tmp_path))
    with Store(str(tmp_path)) as writer:
        for number in range(20):
            assert reader.get(key(number)) is None
            writer.put(key(number), content(number))
            np.testing.assert_array_equal(reader.get(key(number)), content(number))


def test_hits_misses_and_sizes_are_counted(tmp_path):
    with Store(str(tmp_path)) as store:
        store.put(key(0), content(0))
        assert store.get_many([key(0), key(1), key(0)])[1] is None
        stats = store.stats
    on_disk = sum(path.stat().st_size for path in [*files(tmp_path, ".data"), *files(tmp_path, ".index")])
    assert (stats.num_hits, stats.num_misses, stats.num_arrays) == (2, 1, 1)
    assert stats.num_bytes == on_disk > content(0).nbytes


def test_a_run_goes_on_with_the_segment_that_another_left(tmp_path):
    for number in range(5):
        with Store(str(tmp_path)) as store:
            store.put(key(number), content(number))
    assert len(files(tmp_path, ".data")) == 1
    assert all(np.array_equal(Store(str(tmp_path)).get(key(number)), content(number)) for number in range(5))


# Damage


@pytest.mark.parametrize("ending", [".data", ".index"])
def test_a_corrupt_byte_is_a_miss_and_never_garbage(tmp_path, ending):
    with Store(str(tmp_path)) as store:
        for number in range(6):
            store.put(key(number), content(number, 40))
    [path] = files(tmp_path, ending)
    whole = path.read_bytes()
    places = random.Random(0).sample(range(16, len(whole)), 60)
    num_missed = 0
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        for number, found in enumerate(Store(str(tmp_path)).get_many([key(n) for n in range(6)])):
            num_missed += found is None
            assert found is None or np.array_equal(found, content(number, 40))
    # Bytes between arrays, which fill up to a round address, belong to none.
    assert 40 < num_missed <= 60


def test_a_corrupt_array_is_written_anew(tmp_path):
    with Store(str(tmp_path)) as store:
        store.put(key(0), content(0))
    [path] = files(tmp_path, ".data")
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with Store(str(tmp_path)) as store:
        assert store.get(key(0)) is None
        assert store.put(key(0), content(0))
        np.testing.assert_array_equal(store.get(key(0)), content(0))
    np.testing.assert_array_equal(Store(str(tmp_path)).get(key(0)), content(0))


@pytest.mark.parametrize("num_cut", [1, ENTRY_BYTES // 2, ENTRY_BYTES - 1])
def test_half_an_entry_is_passed_over_and_its_room_used_again(tmp_path, num_cut):
    with Store(str(tmp_path)) as store:
        store.put(key(0), content(0))
        store.put(key(1), content(1))
    [index] = files(tmp_path, ".index")
    [data] = files(tmp_path, ".data")
    sizes = index.stat().st_size, data.stat().st_size
    os.truncate(index, sizes[0] - num_cut)
    with Store(str(tmp_path)) as store:
        assert store.get(key(1)) is None
        np.testing.assert_array_equal(store.get(key(0)), content(0))
        store.put(key(1), content(1))
    assert (index.stat().st_size, data.stat().st_size) == sizes
    np.testing.assert_array_equal(Store(str(tmp_path)).get(key(1)), content(1))


def test_data_shorter_than_its_index_says_is_a_miss(tmp_path):
    with Store(str(tmp_path)) as store:
        store.put(key(0), content(0))
        store.put(key(6), content(6))
    [data] = files(tmp_path, ".data")
    os.truncate(data, content(0).nbytes + 100)
    store = Store(str(tmp_path))
    assert store.get(key(6)) is None
    np.testing.assert_array_equal(store.get(key(0)), content(0))


# The limit


def test_the_size_stays_within_the_limit_and_the_oldest_go_first(tmp_path):
    limit, num_arrays = 200_000, 60
    with Store(str(tmp_path), StoreConfig(max_bytes=limit)) as store:
        for number in range(num_arrays):
            assert store.put(key(number), content(number))
            assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= limit
            np.testing.assert_array_equal(store.get(key(number)), content(number))
        kept = [number for number in range(num_arrays) if store.get(key(number)) is not None]
    assert kept == list(range(kept[0], num_arrays))
    assert sum(content(number).nbytes for number in kept) > 0.6 * limit


def test_an_array_stays_whole_in_the_hands_of_a_reader_when_its_segment_goes(tmp_path):
    reader = Store(str(tmp_path))
    with Store(str(tmp_path), StoreConfig(max_bytes=100_000)) as writer:
        writer.put(key(0), content(0))
        held = reader.get(key(0))
        for number in range(1, 60):
            writer.put(key(number), content(number))
        assert writer.get(key(0)) is None
    np.testing.assert_array_equal(held, content(0))
    fresh = reader.get(key(59))
    np.testing.assert_array_equal(fresh, content(59))
    assert reader.get(key(0)) is None


def test_an_array_larger_than_the_limit_is_refused_and_counted(tmp_path):
    with Store(str(tmp_path), StoreConfig(max_bytes=1000)) as store:
        assert not store.put(key(0), content(0))
        assert store.get(key(0)) is None
        assert store.stats.num_refused == 1


def test_a_writer_that_lives_is_never_robbed(tmp_path):
    config = StoreConfig(max_bytes=64_000, segment_bytes=32_000)
    with Store(str(tmp_path), config) as one, Store(str(tmp_path), config) as two, Store(str(tmp_path), config) as late:
        assert one.put(key(0), content(0))
        assert two.put(key(1), content(1))
        assert not late.put(key(2), content(2))
        np.testing.assert_array_equal(late.get(key(0)), content(0))
        one.close()
        assert late.put(key(2), content(2))


def test_a_limit_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="max_bytes: 0 was found"):
        StoreConfig(max_bytes=0)


# Processes

WRITER = textwrap.dedent("""
    import sys
    import numpy as np
    from dataclasses import replace
    from sonant.batches.store import FeatureKey, Store, StoreConfig

    folder, first, last, limit = sys.argv[1], *map(int, sys.argv[2:5])
    base = FeatureKey(content="9f", start=0.0, seconds=1.5, channel=None, front_end="a", weights="b", layer="6",
                      precision="float16")
    with Store(folder, StoreConfig(max_bytes=limit)) as store:
        print("open", flush=True)
        for number in range(first, last):
            array = np.random.default_rng(number).integers(0, 2**16, (1 + number % 7, 1000)).astype(np.uint16)
            store.put(replace(base, layer=str(number)).digest(), array)
            print(number, flush=True)
""")


def writer(folder: Path, first: int, last: int, limit: int = 10**9) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(first), str(last), str(limit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_at_once(tmp_path):
    processes = [writer(tmp_path, 0, 300), writer(tmp_path, 300, 600)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    store = Store(str(tmp_path))
    for number in range(600):
        np.testing.assert_array_equal(store.get(key(number)), content(number))
    assert len(files(tmp_path, ".data")) <= 2  # one, if the second adopted what the first had left


def test_a_forked_child_writes_beside_its_parent_and_not_over_it(tmp_path):
    with Store(str(tmp_path)) as store:
        store.put(key(0), content(0))
        child = os.fork()
        if child == 0:
            for number in range(1, 50, 2):
                store.put(key(number), content(number))
            store.close()
            os._exit(0)
        for number in range(2, 50, 2):
            store.put(key(number), content(number))
        assert os.waitpid(child, 0)[1] == 0
    found = Store(str(tmp_path)).get_many([key(number) for number in range(50)])
    assert all(np.array_equal(array, content(number)) for number, array in enumerate(found))


@pytest.mark.slow
def test_killed_at_any_moment_every_whole_array_is_found_and_none_is_wrong(tmp_path):
    draws, told, first = random.Random(0), list[int](), 0
    for _ in range(25):
        process = writer(tmp_path, first, first + 10**6, limit=10**10)
        assert process.stdout.readline() == "open\n"
        time.sleep(draws.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        lines = process.stdout.read().split("\n")[:-1]  # what stands behind the last newline was cut
        process.wait()
        told += map(int, lines)
        first = max(told, default=0) + 5
        store = Store(str(tmp_path))
        for number in told[-100:] + draws.choices(told or [0], k=20) * bool(told):
            np.testing.assert_array_equal(store.get(key(number)), content(number))
        for number in range(first - 4, first):  # not told of: it is not there, or right
            found = store.get(key(number))
            assert found is None or np.array_equal(found, content(number))
    assert first > 500
    assert len(files(tmp_path, ".data")) == 1  # each goes on where the one before was killed


@pytest.mark.slow
def sizes_of_files(folder):
    """Of those that nobody removes while we look."""
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            yield path.stat().st_size


@pytest.mark.slow
def test_writers_and_a_reader_share_a_store_that_is_too_small(tmp_path):
    limit = 400_000
    processes = [writer(tmp_path, first, first + 1500, limit) for first in (0, 10_000)]
    store = Store(str(tmp_path))
    while any(process.poll() is None for process in processes):
        for number in (*range(0, 1500, 50), *range(10_000, 11_500, 50)):
            found = store.get(key(number))
            assert found is None or np.array_equal(found, content(number))
        assert sum(sizes_of_files(tmp_path)) <= limit
    for process in processes:
        assert process.wait() == 0
    assert store.get(key(1499)) is not None or store.get(key(11_499)) is not None  # the newest are kept


def test_an_entry_that_is_still_being_written_is_seen_when_it_is_whole(tmp_path):
    with Store(str(tmp_path)) as store:
        store.put(key(0), content(0))
    [index] = files(tmp_path, ".index")
    whole = index.read_bytes()
    reader = SegmentReader(str(index).removesuffix(".index"))
    index.write_bytes(whole[:-8] + bytes(8))
    assert not list(reader.new_entries())
    index.write_bytes(whole)
    assert [entry.key for entry in reader.new_entries()] == [key(0)]
