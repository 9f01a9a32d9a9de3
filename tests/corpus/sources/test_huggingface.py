from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.recording import open_recording
from sonant.base.errors import AbsentError, ConfigError, DependencyError, SonantError, SourceError
from sonant.corpus.sources.arrow.tokens import Tokens
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.registry import open_source, recognise
from sonant.corpus.sources.tables.cells import CellError

AUDIO = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def wav(seed: int, num_samples: int = 800) -> bytes:
    content = io.BytesIO()
    noise = np.random.default_rng(seed).uniform(-0.5, 0.5, num_samples)
    soundfile.write(content, noise, 8000, format="WAV", subtype="PCM_16")
    return content.getvalue()


def speech(count: int, **columns: Any) -> pa.Table:
    """Rows with an Audio column."""
    audio = pa.array([{"bytes": wav(row), "path": f"{row}.wav"} for row in range(count)], AUDIO)
    return pa.table({"audio": audio, "text": [f"row {row}" for row in range(count)], **columns})


def samples(rows: Sequence[Sequence[float]], kind: pa.DataType | None = None, **columns: Any) -> pa.Table:
    """Rows with `input_values`."""
    return pa.table({"input_values": pa.array(rows, pa.list_(kind or pa.float32())), **columns})


def noted(table: pa.Table, features: Mapping[str, Any]) -> pa.Table:
    """The table as `datasets` would describe it."""
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


@pytest.fixture
def save(tmp_path) -> Callable[..., str]:
    """Saves a table below a folder as `save_to_disk` does, in so many files, and gives the folder above all."""

    def write(table: pa.Table, name: str = "", num_files: int = 1) -> str:
        folder = tmp_path / "set" / name
        folder.mkdir(parents=True)
        names = [f"data-{number:05}-of-{num_files:05}.arrow" for number in range(num_files)]
        bounds = np.linspace(0, table.num_rows, num_files + 1).astype(int)
        for file, first, last in zip(names, bounds[:-1], bounds[1:], strict=True):
            with pa.ipc.new_stream(folder / file, table.schema) as stream:
                stream.write_table(table.slice(first, last - first), max_chunksize=2)
        (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": file} for file in names]}))
        (folder / "dataset_info.json").write_text("{}")
        return str(tmp_path / "set")

    return write


def heard(audio: str, sample_rate: int | None = None) -> np.ndarray:
    with open_recording(audio, sample_rate=sample_rate) as recording:
        return recording.read(0, None)


def test_a_saved_dataset_is_read_where_it_lies_with_bytes_as_they_were(save, read):
    folder = save(speech(5, speaker_id=[7, 7, 8, 8, 9]), num_files=2)
    assert recognise(folder) == "huggingface"
    found, findings = read(folder)
    assert not findings
    assert [(one.id, one.text, one.speaker) for one in found][3:] == [("set/3", "row 3", "8"), ("set/4", "row 4", "9")]
    assert found[3].audio == f"{folder}#3/audio"
    for row, one in enumerate(found):
        expected, _ = soundfile.read(io.BytesIO(wav(row)), dtype="float32", always_2d=True)
        np.testing.assert_array_equal(heard(one.audio), expected)


def test_numbered_shards_come_in_the_order_of_their_numbers_and_folders_are_splits(save, read):
    for number in range(12):
        folder = save(samples([[number / 100] * 5]), f"train/{number}")
    save(samples([[0.5] * 5]), "eval_clean/0")
    save(samples([[0.5] * 5]), "dev/0")
    assert recognise(folder) == "huggingface"
    found, findings = read(folder)
    assert not findings
    assert [one.id for one in found] == ["dev/0/0", "eval_clean/0/0", *(f"train/{number}/0" for number in range(12))]
    assert [one.split for one in found] == ["dev", "eval_clean", *["train"] * 12]
    assert [heard(one.audio, one.sample_rate)[0, 0] for one in found[2:]] == [np.float32(n / 100) for n in range(12)]


def test_shards_of_one_split_are_read_by_themselves(save, read):
    folder = save(samples([[0.1] * 5]), "train/0")
    save(samples([[0.1] * 5]), "train/1")
    assert recognise(f"{folder}/train") == "huggingface"
    assert [(one.id, one.split) for one in read(f"{folder}/train")[0]] == [("0/0", "train"), ("1/0", "train")]


def test_a_hole_in_the_numbers_of_shards_is_told(save, read):
    for number in (0, 1, 3, 6):
        folder = save(samples([[0.1] * 5]), f"train/{number}")
    found, (hole,) = read(folder)
    assert len(found) == 4
    assert (hole.rule, hole.place, hole.is_error) == ("missing-shard", f"{folder}/train", True)
    assert "of 7 shards 3 are missing: 2, 4, 5" in hole.problem


def test_shards_may_be_numbered_from_one(save, read):
    for number in (1, 2):
        folder = save(samples([[0.1] * 5]), f"train/{number}")
    assert not read(folder)[1]


def test_a_shard_without_its_state_is_told(save, read):
    folder = save(samples([[0.1] * 5]), "train/0")
    save(samples([[0.1] * 5]), "train/1")
    Path(folder, "train/1/state.json").unlink()
    found, (fault,) = read(folder)
    assert (len(found), fault.rule, fault.place) == (1, "missing-shard", f"{folder}/train/1")


def test_two_shards_of_one_number_are_refused(save, read):
    folder = save(samples([[0.1] * 5]), "train/1")
    save(samples([[0.1] * 5]), "train/01")
    with pytest.raises(SourceError, match="'01' and '1' are both the shard 1"):
        read(folder)


def test_a_file_that_a_saved_dataset_names_but_lacks_is_told_and_the_others_are_read(save, read):
    folder = save(speech(4), num_files=2)
    Path(folder, "data-00000-of-00002.arrow").unlink()
    found, (fault,) = read(folder)
    assert fault.rule == "missing-shard"
    assert "data-00000-of-00002.arrow" in fault.problem
    assert [one.text for one in found] == ["row 2", "row 3"]
    np.testing.assert_array_equal(heard(found[0].audio)[:, 0], soundfile.read(io.BytesIO(wav(2)))[0].astype("f4"))


def test_the_files_of_the_hub_are_read_in_order_with_the_splits_of_their_names(tmp_path, read):
    names = [f"data/train-{n:05}-of-00011.parquet" for n in range(11)]
    for name in (*names, "data/validation-00000-of-00001.parquet", "data/other-00000-of-00001-0a1b2c.parquet"):
        (tmp_path / "data").mkdir(exist_ok=True)
        pq.write_table(speech(2), tmp_path / name, row_group_size=1)
    assert recognise(str(tmp_path)) == "huggingface"
    found, findings = read(str(tmp_path))
    assert not findings
    assert [one.split for one in found] == ["other"] * 2 + ["train"] * 22 + ["dev"] * 2
    assert found[2].audio == f"{tmp_path}/{names[0]}#0/audio"
    assert len({one.id for one in found}) == 26
    np.testing.assert_array_equal(heard(found[3].audio), heard(found[5].audio))


def test_a_part_that_the_names_of_the_hub_promise_is_missed(tmp_path, read):
    for number in (0, 1, 4):
        pq.write_table(speech(1), tmp_path / f"train-{number:05}-of-00005.parquet")
    _, (fault,) = read(str(tmp_path))
    assert fault.rule == "missing-shard"
    assert "of 5 shards 2 are missing: 2, 3" in fault.problem


@pytest.mark.parametrize("name", ["default/train/0000.parquet", "default/partial-train/0000.parquet", "train.parquet"])
def test_other_layouts_of_the_hub(tmp_path, read, name):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(speech(1), tmp_path / name)
    assert recognise(str(tmp_path)) == "huggingface"
    assert [one.split for one in read(str(tmp_path))[0]] == ["train"]


def test_a_single_file_of_recordings_is_a_dataset_and_a_table_of_names_is_a_table(tmp_path, read):
    pq.write_table(speech(2), tmp_path / "a.parquet")
    pq.write_table(pa.table({"audio": ["x.wav"], "text": ["x"]}), tmp_path / "b.parquet")
    assert recognise(str(tmp_path / "a.parquet")) == "huggingface"
    assert recognise(str(tmp_path / "b.parquet")) == "table"
    assert [one.id for one in read(str(tmp_path / "a.parquet"))[0]] == ["a/0", "a/1"]


def test_arrow_files_of_either_form_are_read(tmp_path, read):
    table = speech(3)
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=1)
    found, _ = read(str(tmp_path / "a.arrow"))
    assert [one.text for one in found] == ["row 0", "row 1", "row 2"]
    np.testing.assert_array_equal(heard(found[2].audio)[:, 0], soundfile.read(io.BytesIO(wav(2)))[0].astype("f4"))


def test_recordings_that_are_only_named_lie_beside_the_file(tmp_path, read):
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "x.wav").write_bytes(wav(4))
    audio = pa.array([{"bytes": None, "path": "clips/x.wav"}], AUDIO)
    pq.write_table(pa.table({"audio": audio}), tmp_path / "train.parquet")
    (one,) = read(str(tmp_path / "train.parquet"))[0]
    np.testing.assert_array_equal(heard(one.audio)[:, 0], soundfile.read(io.BytesIO(wav(4)))[0].astype("f4"))


def test_classes_are_told_by_their_names(save, read):
    classes = {"_type": "ClassLabel", "names": ["north", "south"]}
    features = {"audio": {"_type": "Audio"}, "accent": classes, "tags": {"_type": "List", "feature": classes}}
    table = speech(3, accent=[1, 0, -1], tags=[[0], [], [0, 1]])
    found, _ = read(save(noted(table, features)), labels=("accent", "tags"))
    assert [one.labels for one in found] == [
        {"accent": "south", "tags": ["north"]},
        {"accent": "north", "tags": []},
        {"accent": None, "tags": ["north", "south"]},
    ]


def test_a_list_of_classes_is_never_taken_for_tokens(save, read):
    classes = {"_type": "Sequence", "feature": {"_type": "ClassLabel", "names": ["a", "b"]}}
    table = noted(speech(1, labels=[[0, 1]]), {"labels": classes})
    assert read(save(table))[0][0].tokens is None


# --- samples and tokens

VOCABULARY = {"<pad>": 0, "<unk>": 1, "|": 2, "h": 3, "e": 4, "l": 5, "o": 6}
HELLO = [3, 4, 5, 5, 6, 2, 6]


@pytest.fixture
def vocabulary(tmp_path) -> str:
    (tmp_path / "vocab.json").write_text(json.dumps(VOCABULARY))
    return str(tmp_path / "vocab.json")


@pytest.mark.parametrize("kind", ["labels", "labels.input_ids", "struct"])
def test_token_ids_are_kept_with_the_text_that_the_vocabulary_tells(save, read, vocabulary, kind):
    ids = [HELLO, [6]]
    columns = (
        {"labels": [{"input_ids": one, "attention_mask": [1]} for one in ids]} if kind == "struct" else {kind: ids}
    )
    folder = save(samples([[0.1] * 9, [0.2] * 9], **columns))
    found, findings = read(folder, vocabulary=vocabulary)
    assert not findings
    assert [(one.tokens, one.text) for one in found] == [(tuple(HELLO), "hello o"), ((6,), "o")]
    source = open_source(folder, SourceOptions(vocabulary=vocabulary))
    assert source.vocabulary() == list(VOCABULARY)


def test_without_a_vocabulary_the_ids_are_kept_and_a_warning_says_what_is_missing(save, read):
    folder = save(samples([[0.1] * 9], labels=[HELLO]))
    (one,), (warning,) = read(folder)
    assert (one.tokens, one.text) == (tuple(HELLO), None)
    assert (warning.rule, warning.is_error) == ("nameless-tokens", False)
    assert open_source(folder).vocabulary() is None


def test_padding_of_labels_is_no_text(save, read, vocabulary):
    table = samples([[0.1] * 9] * 3, labels=[[*HELLO, -100, -100], [6, 0, 0], [-100]])
    found, findings = read(save(table), vocabulary=vocabulary)
    assert not findings
    assert [(one.tokens, one.text) for one in found] == [(tuple(HELLO), "hello o"), ((6,), "o"), ((), "")]


@pytest.mark.parametrize("strange", [7, -1, 2**40])
def test_an_id_outside_the_vocabulary_is_told_by_row(save, read, vocabulary, strange):
    labels = pa.array([[3], [3, strange]], pa.list_(pa.int64()))
    folder = save(samples([[0.1] * 9] * 2, labels=labels))
    (one,), (fault,) = read(folder, vocabulary=vocabulary)
    assert one.text == "h"
    assert (fault.rule, fault.place, fault.id) == ("unknown-token", f"{folder}#1", "set/1")
    assert f"the token {strange}, but the vocabulary has the ids 0 to 6" in fault.problem


def test_a_text_column_wins_over_the_text_of_tokens(save, read, vocabulary):
    table = samples([[0.1] * 9], labels=[HELLO], text=["Hello, o!"])
    assert read(save(table), vocabulary=vocabulary)[0][0].text == "Hello, o!"


@given(st.lists(st.sampled_from(["h", "e", "l", "o"]), min_size=1), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_text_written_with_a_vocabulary_comes_back_from_its_ids(tmp_path_factory, letters, num_pads):
    file = tmp_path_factory.mktemp("v") / "symbols.txt"
    file.write_text("\n".join(VOCABULARY) + "\n")
    tokens = Tokens(str(file))
    ids = [VOCABULARY[letter] for letter in letters]
    assert tokens.text(tokens.read([*ids, *[-100] * num_pads])) == "".join(letters)


def test_pieces_of_words_become_words(tmp_path):
    (tmp_path / "units.txt").write_text("<blank> 0\n<unk> 1\n▁hel 2\nlo 3\n▁you 4\n<sos/eos> 5\n", encoding="utf-8")
    tokens = Tokens(str(tmp_path / "units.txt"))
    assert tokens.text(tokens.read([5, 2, 3, 4, 5])) == "hello you"
    with pytest.raises(CellError, match="token 6"):
        tokens.read([6])


def test_a_tokenizer_of_a_model_serves_as_vocabulary(tmp_path):
    from sonant.text.tokenizer import CharactersConfig, train_tokenizer

    tokenizer = train_tokenizer(["hello you"], CharactersConfig())
    tokenizer.save(str(tmp_path / "model"))
    tokens = Tokens(str(tmp_path / "model"))
    assert tokens.text(tokens.read(tokenizer.encode("you hello"))) == "you hello"


def test_a_length_that_agrees_in_samples_or_seconds_has_no_effect(save, read):
    samples_long = samples([[0.1] * 1600, [0.1] * 800], length=[1600, 800])
    found, findings = read(save(samples_long))
    assert not findings
    assert [(one.seconds, one.extra) for one in found] == [(None, {})] * 2


def test_rows_with_fewer_or_more_samples_than_they_say_are_faults(save, read):
    folder = save(samples([[0.1] * 1600, [0.1] * 800, [0.1] * 9], length=[1600, 1600, 8]))
    found, faults = read(folder)
    assert len(found) == 1
    assert [(one.rule, one.place) for one in faults] == [("unlike-length", f"{folder}#{row}") for row in (1, 2)]
    assert "its 'length' is 1600, but it holds 800 samples" in faults[0].problem


def test_a_length_that_counts_something_else_is_left_alone_with_a_warning(save, read):
    found, (warning,) = read(save(samples([[0.1] * 1600, [0.1] * 800], length=[5, 2])))
    assert len(found) == 2
    assert (warning.rule, warning.is_error) == ("unlike-length", False)


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.int16()])
def test_samples_of_any_usual_kind(save, read, kind):
    rows = [[16384, -16384]] if kind == pa.int16() else np.array([[0.5, -0.5]], np.float16).tolist()
    if kind == pa.float16():
        rows = [np.array(rows[0], np.float16)]
    (one,), _ = read(save(samples(rows, kind)))
    np.testing.assert_array_equal(heard(one.audio, one.sample_rate), np.float32([[0.5], [-0.5]]))
    assert one.sample_rate == 16000


@pytest.mark.parametrize(
    ("rows", "kind", "found"),
    [([["a"]], pa.string(), "string"), ([[1]], pa.int64(), "int64"), ([[True]], pa.bool_(), "bool")],
)
def test_samples_of_an_odd_kind_are_refused_once(save, read, rows, kind, found):
    with pytest.raises(SourceError, match=f"'input_values' holds lists of {found}.*floats from -1 to 1"):
        read(save(samples(rows, kind)))


def test_input_values_that_are_no_lists_are_refused(save, read):
    with pytest.raises(SourceError, match="'input_values' holds float; lists of floats are required"):
        read(save(pa.table({"input_values": pa.array([0.5], pa.float32())})))


def test_samples_with_an_axis_of_channels(save, read):
    table = pa.table({"input_values": pa.array([[[0.5, 0.25]]], pa.list_(pa.list_(pa.float32()))), "length": [2]})
    (one,), _ = read(save(table))
    np.testing.assert_array_equal(heard(one.audio, one.sample_rate), np.float32([[0.5], [0.25]]))


def test_bare_samples_take_the_rate_that_is_told(save, read):
    assert read(save(samples([[0.1] * 9])), sample_rate=8000)[0][0].sample_rate == 8000


def test_features_of_another_model_are_no_sound(save, read):
    table = pa.table({"input_features": pa.array([[[0.5]]], pa.list_(pa.list_(pa.float32())))})
    with pytest.raises(SourceError, match="'input_features' are features"):
        read(save(table))


# --- mistakes


def test_a_column_that_is_not_there_is_answered_with_the_nearest(save, read):
    folder = save(speech(1))
    with pytest.raises(SourceError, match=r"means a column 'audoi'.*Did you mean 'audio'"):
        read(folder, columns={"audio": "audoi"})
    with pytest.raises(SourceError, match=r"means a column 'txet'.*Did you mean 'text'"):
        read(folder, columns={"tokens": "txet"})
    with pytest.raises(SourceError, match="accnt"):
        read(folder, labels=("accnt",))


def test_a_dataset_without_recordings_says_which_columns_it_has(save, read):
    with pytest.raises(SourceError, match=r"no column holds recordings; the columns are text, id\."):
        read(save(pa.table({"text": ["a"], "id": ["b"]})))


def test_two_columns_of_recordings_must_be_told_apart(save, read):
    audio = speech(1)["audio"]
    folder = save(pa.table({"near": audio, "far": audio}))
    with pytest.raises(SourceError, match=r"near, far all hold recordings.*--columns audio=near"):
        read(folder)
    assert read(folder, columns={"audio": "far"})[0][0].audio == f"{folder}#0/far"


def test_options_without_effect_are_refused(save, read, vocabulary):
    folder = save(speech(1))
    with pytest.raises(ConfigError, match=r"--sample-rate: .* tell their own"):
        read(folder, sample_rate=16000)
    with pytest.raises(ConfigError, match=r"--vocabulary: .* token ids"):
        read(folder, vocabulary=vocabulary)


def test_parts_with_other_columns_are_refused(save, read):
    folder = save(speech(1, age=[30]), "train")
    save(speech(1), "dev")
    save(speech(1, age=[30]), "test")
    (Path(folder) / "dev").rename(Path(folder) / "validation")
    with pytest.raises(SourceError, match=r"validation: it has no column 'age', which .*/test has"):
        read(folder)


def test_an_empty_dataset_is_told(save, read):
    with pytest.raises(SourceError, match="has no rows"):
        read(save(speech(0), num_files=0))
    assert read(save(speech(0), "train")[: -len("/set")] + "/set/train") == ([], [])


def test_damaged_files_are_told_by_name(save, read):
    folder = save(speech(4), "train")
    file = Path(folder, "train", "data-00000-of-00001.arrow")
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(SonantError, match=r"data-00000-of-00001\.arrow: .*cannot be read"):
        read(folder)
    Path(folder, "train", "state.json").write_text("{")
    with pytest.raises(SourceError, match=r"state\.json: this is not JSON"):
        read(folder)


def test_a_list_of_splits_that_names_what_is_not_there(save, read):
    folder = save(speech(1), "train")
    Path(folder, "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    found, (fault,) = read(folder)
    assert [one.split for one in found] == ["train"]
    assert (fault.rule, "'test'" in fault.problem) == ("missing-shard", True)


# --- beside `datasets` itself, and the hub


@pytest.fixture
def datasets():
    return pytest.importorskip("datasets")


@pytest.mark.slow
def test_what_datasets_saves_is_read_as_datasets_reads_it(datasets, tmp_path, read):
    made = datasets.Dataset(speech(5, age=[20, 30, 40, 50, 60])).cast_column("audio", datasets.Audio(decode=False))
    picked = made.select([4, 0, 2])
    datasets.DatasetDict(train=picked, validation=made).save_to_disk(tmp_path / "set", num_shards={"train": 2})
    found, findings = read(str(tmp_path / "set"))
    assert not findings
    again = datasets.load_from_disk(str(tmp_path / "set"))
    expected = [(row, name) for name in ("train", "validation") for row in again[name]]
    assert len(found) == len(expected) == 8
    for one, (row, name) in zip(found, expected, strict=True):
        assert (one.text, one.extra["age"], one.split) == (
            row["text"],
            row["age"],
            {"validation": "dev"}.get(name, name),
        )
        want, _ = soundfile.read(io.BytesIO(row["audio"]["bytes"]), dtype="float32", always_2d=True)
        np.testing.assert_array_equal(heard(one.audio), want)


@pytest.mark.slow
def test_an_id_is_fetched_by_datasets_and_its_files_are_read_in_place(datasets, tmp_path, read, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "owner" / "name" / "data").mkdir(parents=True)
    pq.write_table(speech(2), tmp_path / "owner" / "name" / "data" / "train-00000-of-00001.parquet")
    monkeypatch.chdir(tmp_path)
    found, _ = read("hf://datasets/owner/name", format="huggingface")
    assert [(one.text, one.split) for one in found] == [("row 0", "train"), ("row 1", "train")]
    np.testing.assert_array_equal(heard(found[1].audio)[:, 0], soundfile.read(io.BytesIO(wav(1)))[0].astype("f4"))


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_told(datasets, read, monkeypatch, tmp_path):
    import subprocess

    code = (
        "import sys\nfrom sonant.corpus.sources.registry import open_source\n"
        "from sonant.corpus.sources.options import SourceOptions\n"
        "from sonant.base.errors import SonantError\n"
        "try:\n    list(open_source('owner/name', SourceOptions(format='huggingface')).rows())\n"
        "except SonantError as error:\n    print(type(error).__name__, error)\n"
    )
    environment = {"PATH": "", "HF_ENDPOINT": "http://127.0.0.1:9", "HOME": str(tmp_path), "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.startswith("StorageError owner/name: the hub cannot be reached"), done.stdout + done.stderr
    assert "save_to_disk" in done.stdout


def test_an_id_without_the_library_says_how_to_install_it(read, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DependencyError, match=r"pip install 'sonant\[datasets\]'"):
        read("owner/name", format="huggingface")


def test_saved_datasets_need_no_library(save, read, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert len(read(save(speech(2)))[0]) == 2


def test_a_path_that_is_no_id_and_not_there(read):
    with pytest.raises(AbsentError, match="nothing is there"):
        read("/nowhere/at/all", format="huggingface")


def test_the_place_of_the_hub_is_recognised():
    assert recognise("hf://datasets/owner/name") == "huggingface"
    assert recognise("https://huggingface.co/datasets/owner/name") == "huggingface"
