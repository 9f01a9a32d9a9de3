"""A run in a bucket works locally, sends what is whole, and goes on from there on an empty machine."""

from __future__ import annotations

import shutil

import pytest
from small_training import run_small

from sonant.base.errors import UsageError
from sonant.base.storage import file_system
from sonant.checkpoints.bundle import open_bundle

pytestmark = pytest.mark.slow
STEPS = "trainer.limits.max_steps"


def test_an_empty_machine_goes_on_from_the_bucket(bucket, tmp_path, monkeypatch, capsys):
    place = f"{bucket}/runs/one"
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path / "first"))
    constant = ["trainer.schedule.kind=constant", "trainer.schedule.warmup=0", "dropout=0.1"]
    run_small(place, f"{STEPS}=8", *constant)
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path / "second"))
    run_small(place, f"{STEPS}=20", *constant, is_silent=False)
    assert "going on from step 8" in capsys.readouterr().err
    run_small(tmp_path / "local", f"{STEPS}=8", *constant)
    run_small(tmp_path / "local", f"{STEPS}=20", *constant)
    system, root = file_system(place)
    for name in ("bundle/model.safetensors", "bundle/bundle.json", "states/step-000020/weights.safetensors"):
        assert system.cat_file(f"{root}/{name}") == (tmp_path / "local" / name).read_bytes()
    assert open_bundle(f"{place}/bundle").description.step
    sent = {path[len(root) + 1 :].split("/")[0] for path in system.find(root)}
    assert {"config.yaml", "metrics.jsonl", "all_results.json", "states", "bundle"} <= sent


def test_a_machine_that_has_fallen_behind_goes_on_from_the_bucket(bucket, tmp_path, monkeypatch, capsys):
    place, constant = f"{bucket}/runs/four", ["trainer.schedule.kind=constant", "trainer.schedule.warmup=0"]
    for machine, steps in (("first", 8), ("second", 16), ("first", 24)):
        monkeypatch.setenv("SONANT_CACHE", str(tmp_path / machine))
        run_small(place, f"{STEPS}={steps}", *constant, is_silent=False)
    assert "going on from step 16" in capsys.readouterr().err


def test_a_state_without_its_marker_is_no_state(bucket, tmp_path, monkeypatch, capsys):
    place = f"{bucket}/runs/two"
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path / "first"))
    run_small(place, f"{STEPS}=16")
    system, root = file_system(place)
    system.rm_file(f"{root}/states/step-000016/state.json")
    shutil.rmtree(tmp_path / "first")
    run_small(place, f"{STEPS}=20", is_silent=False)
    assert "going on from step 8" in capsys.readouterr().err


def test_states_that_are_not_kept_are_removed_there_too(bucket, tmp_path, monkeypatch):
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path))
    run_small(f"{bucket}/runs/three", "trainer.keep.last=1", "trainer.keep.best=false", "trainer.rhythm.save=4")
    system, root = file_system(f"{bucket}/runs/three/states")
    system.invalidate_cache()
    assert {path[len(root) + 1 :].split("/")[0] for path in system.find(root)} == {"step-000024"}


def test_a_web_server_is_no_place_for_a_run():
    with pytest.raises(UsageError, match="web server"):
        run_small("https://localhost/run")
