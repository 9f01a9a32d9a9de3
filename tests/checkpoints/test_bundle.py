"""A bundle is whole or the one before, says what it is, and refuses what it is not."""

from __future__ import annotations

import json

import pytest
import torch

from sonant.base.errors import SonantError
from sonant.checkpoints.bundle import BundleError, Description, build, open_bundle, put_in_place, recover, write_bundle
from sonant.checkpoints.tensors import load_weights, read_tensors, write_tensors

DESCRIPTION = Description(task="language", architecture="causal", config={"a": 1}, metrics={"loss": 1.25}, step=3)
WEIGHTS = {"b": torch.arange(6.0).reshape(2, 3), "a": torch.tensor([True, False])}


def written(folder, description=DESCRIPTION):
    write_bundle(str(folder), description, WEIGHTS, {"README.md": "# A model\n"})
    return folder


def test_what_was_written_is_read(tmp_path):
    bundle = open_bundle(str(written(tmp_path / "bundle")))
    assert bundle.description == DESCRIPTION
    weights = read_tensors(bundle.path("model.safetensors"))
    assert weights.keys() == WEIGHTS.keys()
    assert all(torch.equal(weights[name], WEIGHTS[name]) for name in WEIGHTS)


def test_the_same_bundle_gives_the_same_bytes(tmp_path):
    one, other = written(tmp_path / "one"), written(tmp_path / "other")
    for path in one.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes()


def test_a_kill_between_two_renames_is_mended(tmp_path):
    folder = written(tmp_path / "bundle")
    folder.rename(tmp_path / ".bundle.old")
    recover(str(folder))
    assert open_bundle(str(folder)).description == DESCRIPTION
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_half_written_bundle_goes_and_the_whole_one_stays(tmp_path):
    folder = written(tmp_path / "bundle")
    (tmp_path / ".bundle.part").mkdir()
    (tmp_path / ".bundle.part" / "model.safetensors").write_bytes(b"half")
    recover(str(folder))
    assert open_bundle(str(folder)).description == DESCRIPTION
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_newer_bundle_takes_the_place_of_an_older_one(tmp_path):
    folder = written(tmp_path / "bundle")
    newer = written(tmp_path / "newer", Description(task="ctc", architecture="causal", config={}))
    put_in_place(str(newer), str(folder))
    assert open_bundle(str(folder)).description.task == "ctc"


def changed(folder, **values):
    path = folder / "bundle.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 99}, "format 99 was found, 1 is read"),
        ({"colour": "red"}, "the key 'colour' is not known"),
    ],
)
def test_a_bundle_of_another_time_is_refused(tmp_path, change, told):
    folder = written(tmp_path / "bundle")
    changed(folder, **change)
    with pytest.raises(BundleError, match=told):
        open_bundle(str(folder))


def test_a_folder_that_is_no_bundle_is_told_from_one(tmp_path):
    with pytest.raises(BundleError, match=r"bundle\.json is missing"):
        open_bundle(str(tmp_path))
    (tmp_path / "bundle.json").write_text("{")
    with pytest.raises(BundleError, match="not JSON"):
        open_bundle(str(tmp_path))


def test_another_task_is_refused_with_both_names(tmp_path):
    bundle = open_bundle(str(written(tmp_path / "bundle")))
    with pytest.raises(BundleError, match="trained for 'language', 'ctc' or 'streaming' is required"):
        bundle.require_task("ctc", "streaming")


def test_an_unknown_architecture_names_the_nearest():
    with pytest.raises(BundleError, match="Did you mean 'causal'"):
        build("casual", {}, "here")


def test_tensors_that_share_memory_are_written_once_each(tmp_path):
    base = torch.arange(4.0)
    write_tensors(str(tmp_path / "t.safetensors"), {"a": base, "b": base.view(2, 2), "c": base[1:]})
    found = read_tensors(str(tmp_path / "t.safetensors"))
    assert found["a"].tolist() == [0, 1, 2, 3]
    assert found["b"].tolist() == [[0, 1], [2, 3]]
    assert found["c"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("kept", [0, 5, -1])
def test_a_damaged_file_of_weights_is_refused_with_its_name(tmp_path, kept):
    path = tmp_path / "t.safetensors"
    write_tensors(str(path), WEIGHTS)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(SonantError, match=r"t\.safetensors: this is no whole safetensors file"):
        read_tensors(str(path))


def test_weights_of_another_model_are_refused_by_name_and_shape():
    model = torch.nn.Linear(2, 3)
    with pytest.raises(SonantError, match="weight"):
        load_weights(model, {"weight": torch.zeros(3, 2)}, "here")  # no bias
    with pytest.raises(SonantError, match="weight"):
        load_weights(model, {"weight": torch.zeros(2, 2), "bias": torch.zeros(3)}, "here")
    with pytest.raises(SonantError, match="bais"):
        load_weights(model, {"weight": torch.zeros(3, 2), "bais": torch.zeros(3)}, "here")
